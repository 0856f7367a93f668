"""Coverage-guided fuzzing of the parsers that are written by hand, by atheris (extra `fuzz`).

Each parser runs in a process of its own, for atheris ends the process it runs in. What it mutates
begins with whole files. A parser returns something of the kind it promises, or raises a
`SightlineError`; anything else is a failure, whose input is saved.
"""

import base64
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from attack.law import Failure

_INPUT_BYTES = 4096
_SECONDS = 10  # for one input


@dataclass(frozen=True)
class Parser:
    """What makes a parser, given a folder to put files in; the modules to watch; whole inputs."""

    make: Callable[[Path], Callable[[bytes], object]]
    modules: tuple[str, ...]
    seeds: tuple[bytes, ...]


def _tokenizer(folder: Path) -> Callable[[bytes], object]:
    from sightline.text.tokenizer import tokenize

    def parse(data: bytes) -> None:
        words = tokenize(data.decode("utf-8", "replace"))
        assert all(word and not re.search(r"[ \n\t]", word) for word in words), words

    return parse


def _tsv(folder: Path) -> Callable[[bytes], object]:
    from sightline.encoders.precomputed import TsvRegions

    path = folder / "features.tsv"

    def parse(data: bytes) -> None:
        path.write_bytes(data)
        table = TsvRegions(path)
        for name in table:
            regions = table[name]
            assert regions.vectors.isfinite().all()
            assert len(regions.boxes) == len(regions.vectors)

    return parse


def _tfjs(folder: Path) -> Callable[[bytes], object]:
    from sightline.encoders.conversion import manifest_arrays

    def parse(data: bytes) -> None:
        manifest, _, shard = data.partition(b"\0")
        members = {"model.json": manifest, "group1-shard1of1": shard}
        for name, array in manifest_arrays(members, ""):
            assert isinstance(name, str)
            assert array.dtype == "<f4"

    return parse


def _meteor_table(folder: Path) -> Callable[[bytes], object]:
    from sightline.metrics.meteor.index import Source, build, read

    jar, table, index = folder / "meteor.jar", folder / "paraphrase.gz", folder / "index"
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr("synonym/english.synsets", "dog\n1 2\n")
        file.writestr("synonym/english.exceptions", "mouse\nmice\n")
        file.writestr("function/english.words", "a\nthe\n")
        file.writestr("nonbreaking/english.prefixes", "Mr\nNo #NUMERIC_ONLY#\n")

    def parse(data: bytes) -> None:
        table.write_bytes(gzip.compress(data, 1))
        build(Source(jar, table), index)
        assert read(index) is not None

    return parse


def _meteor_index(folder: Path) -> Callable[[bytes], object]:
    from sightline.metrics.meteor.index import read

    path = folder / "index"

    def parse(data: bytes) -> None:
        path.write_bytes(data)
        if index := read(path):
            arrays, lists = index
            assert all(isinstance(name, str) for name in (*arrays, *lists))

    return parse


def _tsv_line() -> bytes:
    import numpy as np

    boxes = base64.b64encode(np.array([[0, 0, 4, 4]], "<f4").tobytes())
    vectors = base64.b64encode(np.ones((1, 3), "<f4").tobytes())
    return b"\t".join([b"1", b"9", b"9", b"1", boxes, vectors]) + b"\n"


def _tfjs_model() -> bytes:
    group = {"paths": ["group1-shard1of1"], "weights": [{"name": "a/kernel", "shape": [1, 2]}]}
    return json.dumps({"weightsManifest": [group]}).encode() + b"\0" + bytes(8)


def _index_file() -> bytes:
    import numpy as np
    from safetensors.numpy import save

    return save({"words": np.zeros(3, np.uint8)}, {"lists": '{"prefixes": {}}'})


def parsers() -> dict[str, Parser]:
    return {
        "tokenizer": Parser(
            _tokenizer,
            ("sightline.text.tokenizer",),
            (b"A man's dog, isn't it? (U.S. & 1/2) www.x.org", "naïve café … 3.5%".encode()),
        ),
        "TSV": Parser(_tsv, ("sightline.encoders.precomputed",), (_tsv_line(), 2 * _tsv_line())),
        "tfjs weights": Parser(_tfjs, ("sightline.encoders.conversion",), (_tfjs_model(),)),
        "METEOR's table": Parser(
            _meteor_table, ("sightline.metrics.meteor.index",), (b"0.5\na dog\nthe dog\n" * 2, b"")
        ),
        "METEOR's index": Parser(
            _meteor_index, ("sightline.metrics.meteor.index",), (_index_file(),)
        ),
    }


def keep_the_law(parse: Callable[[bytes], object], data: bytes) -> None:
    """Parse; a `SightlineError` of one line is as good as a result."""
    from sightline.errors import SightlineError

    try:
        parse(data)
    except SightlineError as error:
        if "\n" in str(error):
            raise ValueError(f"not one line: {error}") from None


def fuzz_all(runs: int, seed: int) -> list[tuple[str, int, list[Failure]]]:
    """A row for each parser."""
    rows = []
    for name in parsers():
        print(f"fuzzing {name}", file=sys.stderr)
        tests = str(Path(__file__).parents[1])
        path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            done = subprocess.run(
                [sys.executable, "-m", "attack.fuzzing", name, str(runs), str(seed), folder],
                env={**os.environ, "PYTHONPATH": path},
                cwd=folder,  # in the repository, attack.py would be found before the package
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            log = done.stdout.decode(errors="replace")
            tried = max(map(int, re.findall(r"^#(\d+)\s", log, re.M)), default=0)
            failures = []
            if done.returncode != 0:
                crashes = [p.read_bytes()[:200] for p in Path(folder).glob("crash-*")]
                lines = [line for line in log.splitlines() if line.strip()]
                why = next((x for x in lines if re.match(r"\w*(Error|Exception)\b", x)), lines[-1])
                failures = [Failure(f"fuzzing {name}", f"{why} {crashes}")]
        rows.append((f"inputs to {name}", tried, failures))
    return rows


def _fuzz(name: str, runs: int, seed: int, folder: Path) -> None:
    """Fuzz one parser, and end the process."""
    import atheris

    parser = parsers()[name]
    with atheris.instrument_imports(include=list(parser.modules)):
        for module in parser.modules:
            __import__(module)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, whole in enumerate(parser.seeds):
        (corpus / str(number)).write_bytes(whole)
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), line_buffering=True)
    limits = [f"-runs={runs}", f"-seed={seed + 1}", f"-max_len={_INPUT_BYTES}"]
    limits += [f"-timeout={_SECONDS}", "-rss_limit_mb=1500", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *limits, str(corpus)], partial(keep_the_law, parser.make(folder)))
    atheris.Fuzz()


if __name__ == "__main__":
    _fuzz(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
