"""Boxes for a dataset's pictures: COCO instances and Flickr30k Entities.

All become `Grounding`s with boxes as fractions of the picture, so they hold for pictures that were
resized since the boxes were drawn. A phrase of Entities is tied to the caption with the same
tokens; where the wording was corrected and no caption agrees, the box stays, untied.
"""

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from sightline.data.dataset import Box, CaptionDataset, CaptionedImage, Grounding
from sightline.data.fields import field, load_json, optional_field, read_lines, text_field
from sightline.errors import DataError
from sightline.files import CONFIG_BYTES, DATA_BYTES, MEGABYTE, open_regular, read_bytes
from sightline.parsing import parse_json
from sightline.text.tokenizer import tokenize

_UNPACKED_BYTES = 200 * MEGABYTE  # Flickr30k Entities have 30
_LARGEST = 1_000_000_000  # pixels of an edge

Groundings = dict[str, tuple[Grounding, ...]]
"""By picture name."""

Phrase = tuple[str, int, int]
"""A chain id and the words `[start, end)` of a sentence that name it."""


def read_boxes(path: Path | str, dataset: CaptionDataset) -> CaptionDataset:
    """The dataset with boxes from `path`.

    | what `path` is                                    | format                                 |
    | ------------------------------------------------- | -------------------------------------- |
    | `instances_*.json`                                | COCO: a box per object, by category    |
    | a folder with `Annotations/` and `Sentences/`     | Flickr30k Entities as released         |
    | `*.json`, `*.json.gz` with `"format": 1`          | Entities in one compact file           |
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such box file or folder")
    if path.is_dir():
        groundings = _entities_folder(path, dataset)
    else:
        content = _load_gzip(path) if path.suffix == ".gz" else load_json(path)
        is_instances = isinstance(content, dict) and "categories" in content
        reader = _instances if is_instances else _entities_compact
        groundings = reader(content, path, dataset)
    if not groundings:
        raise DataError(f"{path}: has boxes for none of the dataset's {len(dataset)} pictures")
    return dataset.with_groundings(groundings)


def _instances(content: Any, path: Path, dataset: CaptionDataset) -> Groundings:
    """COCO `instances_*.json`; boxes are `x, y, width, height` in pixels."""
    names = {
        field(category, "id", int, where): text_field(category, "name", where)
        for category, where in _records(content, "categories", path)
    }
    listed = {
        field(record, "id", (int, str), where): record
        for record, where in _records(content, "images", path)
    }
    wanted = {image.id: image.name for image in dataset} | {
        image.name: image.name for image in dataset
    }
    groundings: dict[str, list[Grounding]] = defaultdict(list)
    for record, where in _records(content, "annotations", path):
        key = field(record, "image_id", (int, str), where)
        picture = listed.get(key)
        category = field(record, "category_id", int, where)
        if picture is None or category not in names:
            raise DataError(f"{where}: names a picture or a category that the file does not list")
        name = wanted.get(key) or wanted.get(optional_field(picture, "file_name", str, "", where))
        if name is None:
            continue
        x, y, w, h = _edges(field(record, "bbox", list, where), where)
        box = _fractions(x, y, x + w, y + h, _size(picture, where))
        if _has_area(box):
            groundings[name].append(Grounding(names[category], (box,)))
    return {name: tuple(boxes) for name, boxes in groundings.items()}


def _entities_compact(content: Any, path: Path, dataset: CaptionDataset) -> Groundings:
    """Flickr30k Entities in one JSON: per picture its size, chains' boxes and sentences."""
    if not (isinstance(content, dict) and content.get("format") == 1):
        raise DataError(f'{path}: neither COCO instances nor compact Entities ("format": 1)')
    records = field(content, "images", dict, str(path))
    groundings = {}
    for image in dataset:
        record = records.get(image.name) or records.get(Path(image.name).name)
        if record is None:
            continue
        where = f"{path}, '{image.name}'"
        sentences = [
            _sentence(sentence, where) for sentence in field(record, "sentences", list, where)
        ]
        chains = field(record, "boxes", dict, where)
        boxes = {
            chain: [_edges(edges, where) for edges in field(chains, chain, list, where)]
            for chain in chains
        }
        groundings[image.name] = _ground(image, boxes, _size(record, where), sentences)
    return groundings


def _sentence(record: Any, where: str) -> tuple[list[str], list[Phrase]]:
    return field(record, "text", str, where).split(), [
        (
            field(phrase, "id", str, where),
            field(phrase, "start", int, where),
            field(phrase, "end", int, where),
        )
        for phrase in field(record, "phrases", list, where)
    ]


def _records(content: Any, key: str, path: Path) -> Iterator[tuple[Any, str]]:
    """The records of a list, each with its place for messages."""
    for number, record in enumerate(field(content, key, list, str(path))):
        yield record, f"{path}, {key} {number}"


def _edges(edges: Any, where: str) -> list[float]:
    if not (isinstance(edges, list) and len(edges) == 4 and all(map(_is_length, edges))):
        raise DataError(f"{where}: a box must be four numbers of at most {_LARGEST:,}")
    return list(edges)


def _size(record: Any, where: str) -> tuple[int, int]:
    width, height = field(record, "width", int, where), field(record, "height", int, where)
    if not (1 <= width <= _LARGEST and 1 <= height <= _LARGEST):
        raise DataError(f"{where}: a picture must not be {width:,} pixels by {height:,}")
    return width, height


def _is_length(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _entities_folder(path: Path, dataset: CaptionDataset) -> Groundings:
    """Flickr30k Entities as released: an XML file and a sentence file per picture."""
    annotations, sentences = path / "Annotations", path / "Sentences"
    if not (annotations.is_dir() and sentences.is_dir()):
        raise DataError(f"{path}: a folder of Entities must contain Annotations/ and Sentences/")
    groundings = {}
    for image in dataset:
        stem = Path(image.name).stem
        xml, text = annotations / f"{stem}.xml", sentences / f"{stem}.txt"
        if xml.is_file() and text.is_file():
            boxes, size = _read_xml(xml)
            lines = (line for _, line in read_lines(text))
            groundings[image.name] = _ground(image, boxes, size, map(_read_sentence, lines))
    return groundings


def _read_xml(path: Path) -> tuple[dict[str, list[list[float]]], tuple[int, int]]:
    try:
        root = ElementTree.fromstring(read_bytes(path, CONFIG_BYTES))
        sides = {side: int(root.findtext(f"size/{side}", "")) for side in ("width", "height")}
        boxes: dict[str, list[list[float]]] = defaultdict(list)
        for thing in root.iter("object"):
            if (bounds := thing.find("bndbox")) is None:
                continue  # marked as the whole scene, or as having no box
            edges = [int(bounds.findtext(e, "")) for e in ("xmin", "ymin", "xmax", "ymax")]
            for name in thing.iter("name"):
                boxes[name.text or ""].append(_edges(edges, str(path)))
    except (OSError, ElementTree.ParseError, ValueError) as error:
        raise DataError(f"{path}: not an Entities annotation ({error})") from None
    return boxes, _size(sides, str(path))


_PHRASE = re.compile(r"\[/EN#(\d+)(?:/[^\s/\]]+)* ([^\]]*)\]")


def _read_sentence(line: str) -> tuple[list[str], list[Phrase]]:
    """`[/EN#18/people A child] runs` -> its words and the span of chain 18."""
    words: list[str] = []
    phrases = []
    end_of_last = 0
    for match in _PHRASE.finditer(line):
        words += line[end_of_last : match.start()].split()
        start = len(words)
        words += match[2].split()
        phrases.append((match[1], start, len(words)))
        end_of_last = match.end()
    return words + line[end_of_last:].split(), phrases


def _ground(
    image: CaptionedImage,
    boxes: Mapping[str, Sequence[Sequence[float]]],
    size: tuple[int, int],
    sentences: Iterable[tuple[list[str], list[Phrase]]],
) -> tuple[Grounding, ...]:
    """Entities' boxes are pixels counted from 1, both ends included, as in PASCAL VOC."""
    by_tokens = {
        tuple(tokenize(caption)): i for i, caption in reversed([*enumerate(image.captions)])
    }
    chains = {
        chain: tuple(
            filter(
                _has_area,
                (_fractions(x0 - 1, y0 - 1, x1, y1, size) for x0, y0, x1, y1 in edges),
            )
        )
        for chain, edges in boxes.items()
    }
    groundings = []
    for words, phrases in sentences:
        tokens = tokenize(" ".join(words))
        caption = by_tokens.get(tuple(tokens))
        for chain, start, end in phrases:
            named = tokenize(" ".join(words[start:end]))
            if not (named and chains.get(chain)):
                continue
            grounding = Grounding(" ".join(named), chains[chain])
            # Punctuation is no token, so a span of words is counted again in tokens.
            before = len(tokenize(" ".join(words[:start])))
            span = (before, before + len(named))
            if caption is not None and tokens[slice(*span)] == named:
                grounding = replace(grounding, caption=caption, span=span)
            groundings.append(grounding)
    return tuple(groundings)


def _has_area(box: Box) -> bool:
    return box[0] < box[2] and box[1] < box[3]


def _fractions(x0: float, y0: float, x1: float, y1: float, size: tuple[int, int]) -> Box:
    def clip(edge: float) -> float:
        return min(max(edge, 0.0), 1.0)

    width, height = size
    return clip(x0 / width), clip(y0 / height), clip(x1 / width), clip(y1 / height)


def _load_gzip(path: Path) -> Any:
    try:
        with open_regular(path, DATA_BYTES) as file, gzip.GzipFile(fileobj=file) as unpacked:
            content = unpacked.read(_UNPACKED_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a gzipped JSON file ({error})") from None
    if len(content) > _UNPACKED_BYTES:
        raise DataError(f"{path}: unpacks to more than {_UNPACKED_BYTES // MEGABYTE} megabytes")
    return parse_json(content, str(path), DataError)
