"""METEOR's word lists and paraphrase table as arrays that a memory map opens at once.

The index is one safetensors file. Its words are sorted UTF-8 strings, one after another, and a
word's number is its place. Its phrases are the nodes of a trie: `edges` holds sorted keys
`parent * number_of_words + word`, the node an edge leads to is one more than the edge's place, and
node 0 is the empty phrase. Lists of lists are kept flat; `..._starts` says where each one begins.
"""

import collections
import itertools
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from safetensors.numpy import save

from sightline.errors import CacheError, DataError
from sightline.files import atomic_write
from sightline.progress import progress

Array = NDArray[Any]
Index = tuple[dict[str, Array], dict[str, Any]]  # arrays by name, short lists by name

_EDITION = 1  # of the layout; a new one makes every index be built again
_SYNSETS = "synonym/english.synsets"
_EXCEPTIONS = "synonym/english.exceptions"
_FUNCTION_WORDS = "function/english.words"
_PREFIXES = "nonbreaking/english.prefixes"
_DTYPES = {"U8": np.uint8, "I32": np.int32, "I64": np.int64}  # by their safetensors names
_READ = 1 << 20
_BATCH = 1 << 16


@dataclass(frozen=True)
class Source:
    """The files METEOR's authors ship: a jar with the word lists, a gzipped paraphrase table."""

    jar: Path
    table: Path

    def fingerprint(self) -> str:
        """The checksums the two archives carry: a changed file is noticed without reading it."""
        try:
            with zipfile.ZipFile(self.jar) as jar:
                members = (_SYNSETS, _EXCEPTIONS, _FUNCTION_WORDS, _PREFIXES)
                checks = [jar.getinfo(member).CRC for member in members]
            with self.table.open("rb") as table:
                table.seek(-8, 2)  # gzip ends with the CRC-32 and the length of its contents
                checks += struct.unpack("<II", table.read(8))
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise self.damaged(error) from error
        return f"{_EDITION}-{zlib.crc32(repr(checks).encode()):08x}"

    def lines(self, member: str) -> list[str]:
        with zipfile.ZipFile(self.jar) as jar:
            return jar.read(member).decode().splitlines()

    def listed(self, member: str) -> Iterator[tuple[str, list[str]]]:
        """A file whose lines come in twos: a word, then what belongs to it."""
        lines = self.lines(member)
        return ((key, row.split()) for key, row in zip(lines[::2], lines[1::2], strict=True))

    def pairs(self) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Phrases and their paraphrases, some thousands at a time, in the order of the table."""
        inflate = zlib.decompressobj(wbits=31)
        rest = b""
        reads = -(-self.table.stat().st_size // _READ)
        description = "indexing METEOR's paraphrases, once"
        with self.table.open("rb") as table:
            for _ in progress(range(reads), description, total=reads, unit="megabyte"):
                # Lines come in threes: probability, phrase, paraphrase.
                lines = (rest + inflate.decompress(table.read(_READ))).split(b"\n")
                whole = (len(lines) - 1) // 3 * 3
                rest = b"\n".join(lines[whole:])
                yield lines[1:whole:3], lines[2:whole:3]
        if rest or not inflate.eof:
            raise ValueError(f"{self.table.name} is cut short")

    def damaged(self, error: Exception) -> DataError:
        return DataError(
            f"METEOR's data beside {self.jar} cannot be read ({error}): "
            "pip install --force-reinstall pycocoevalcap==1.2"
        )


class _Numbers(collections.defaultdict[bytes, int]):
    """Gives every new key the next number; to look up many keys never leaves C."""

    def __init__(self) -> None:
        super().__init__(self.__len__)

    def of(self, keys: Sequence[bytes]) -> NDArray[np.int32]:
        return np.fromiter(map(self.__getitem__, keys), np.int32, len(keys))


def _spell(phrases: Iterable[bytes], words: _Numbers) -> tuple[Array, Array]:
    """The words of all phrases end to end, and the number of words in each."""
    flat: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    remaining = iter(phrases)
    while batch := list(itertools.islice(remaining, _BATCH)):
        flat.append(words.of(b" ".join(batch).split(b" ")))
        lengths.extend(map(bytes.count, batch, itertools.repeat(b" ")))
    return np.concatenate(flat), np.array(lengths, np.int32) + 1


def _trie(flat: Array, lengths: Array, words: int) -> tuple[Array, Array]:
    """The edges of a trie over all phrases, and the node of each phrase.

    Nodes are numbered level by level, so the keys of a level are larger than all before them.
    """
    begins = np.cumsum(lengths) - lengths
    nodes = np.zeros(len(lengths), np.int32)
    edges = []
    made = 1
    for depth in range(lengths.max()):
        alive = np.flatnonzero(lengths > depth)
        keys = nodes[alive] * np.int64(words) + flat[begins[alive] + depth]
        level, inverse = np.unique(keys, return_inverse=True)
        edges.append(level)
        nodes[alive] = inverse + made
        made += len(level)
    return np.concatenate(edges), nodes


def _flatten(rows: Mapping[int, Sequence[int]], count: int) -> tuple[Array, Array]:
    """Rows by number, end to end, and where each of `count` begins; a missing row is empty."""
    starts = np.zeros(count + 1, np.int32)
    for number, row in rows.items():
        starts[number + 1] = len(row)
    flat = itertools.chain.from_iterable(rows[number] for number in sorted(rows))
    return np.fromiter(flat, np.int32), np.cumsum(starts, dtype=np.int32)


def _arrays(source: Source) -> dict[str, Array]:
    """Everything the index holds but the short lists."""
    synsets = dict(source.listed(_SYNSETS))
    bases = collections.defaultdict(list)  # "mice" -> ["mouse"]
    for base, forms in source.listed(_EXCEPTIONS):
        for form in forms:
            bases[form].append(base)

    phrases, words = _Numbers(), _Numbers()
    of_phrase, of_paraphrase = [], []
    for left, right in source.pairs():
        of_phrase.append(phrases.of(left))
        of_paraphrase.append(phrases.of(right))
    flat, lengths = _spell(phrases, words)
    known = itertools.chain(synsets, bases, *bases.values())
    vocabulary = sorted({*words, *(word.encode() for word in known)})
    place = {word.decode(): number for number, word in enumerate(vocabulary)}
    rank = np.array([place[word.decode()] for word in words], np.int32)
    edges, nodes = _trie(rank[flat], lengths, len(vocabulary))

    left_nodes, right_nodes = nodes[np.concatenate(of_phrase)], nodes[np.concatenate(of_paraphrase)]
    order = np.argsort(left_nodes, kind="stable")  # paraphrases stay in the order of the table
    sources, starts = np.unique(left_nodes[order], return_index=True)
    synset_rows = {place[word]: [int(name) for name in row] for word, row in synsets.items()}
    base_rows = {place[form]: [place[base] for base in row] for form, row in bases.items()}
    flat_synsets, synset_starts = _flatten(synset_rows, len(vocabulary))
    flat_bases, base_starts = _flatten(base_rows, len(vocabulary))
    return {
        "words": np.frombuffer(b"".join(vocabulary), np.uint8),
        "word_starts": np.cumsum([0, *map(len, vocabulary)], dtype=np.int32),
        "synsets": flat_synsets,
        "synset_starts": synset_starts,
        "bases": flat_bases,
        "base_starts": base_starts,
        "edges": edges,
        "sources": sources,
        "target_starts": np.append(starts, len(order)).astype(np.int32),
        "targets": right_nodes[order],
    }


def build(source: Source, path: Path) -> None:
    """Index the source into `path`, whole or not at all."""
    try:
        arrays = _arrays(source)
        prefixes = {
            fields[0]: "#NUMERIC_ONLY#" in fields[1:]
            for line in source.lines(_PREFIXES)
            if (fields := line.split()) and not fields[0].startswith("#")
        }
        lists = {"function_words": source.lines(_FUNCTION_WORDS), "prefixes": prefixes}
    except (OSError, KeyError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        raise source.damaged(error) from error
    with atomic_write(path, "wb") as file:
        file.write(save(arrays, {"lists": json.dumps(lists)}))


def read(path: Path) -> Index | None:
    """The arrays and the short lists of an index, memory-mapped; None without a whole index."""
    try:
        mapped = np.memmap(path, np.uint8, "r").view(np.ndarray)
        begin = 8 + int.from_bytes(mapped[:8].tobytes(), "little")
        header = json.loads(mapped[8:begin].tobytes())
        lists = json.loads(header.pop("__metadata__")["lists"])
        arrays = {
            name: mapped[begin + entry["data_offsets"][0] : begin + entry["data_offsets"][1]]
            .view(_DTYPES[entry["dtype"]])
            .reshape(entry["shape"])
            for name, entry in header.items()
        }
    # None, or cut short, or not one of ours: then it is built again.
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return (arrays, lists) if isinstance(lists, dict) else None


def read_or_build(source: Source, path: Path) -> Index:
    """The index at `path`, built first where there is none; by one process, if many ask."""
    index = read(path)
    if index is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(path.with_suffix(".lock")):
                index = read(path)
                if index is None:
                    build(source, path)
                    index = read(path)
        except OSError as error:
            raise CacheError(
                f"cannot write METEOR's index to {path} ({error.strerror}): "
                "set SIGHTLINE_CACHE to a folder that can be written"
            ) from error
        assert index, f"{path} was written and cannot be read"
    return index
