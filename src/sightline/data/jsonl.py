"""Our own caption format: JSON lines, one per picture."""

import json
from pathlib import Path
from typing import Any

from sightline.data.dataset import CaptionDataset, CaptionedImage, Grounding
from sightline.data.fields import field, optional_field, read_lines, split_name, text_field
from sightline.errors import DataError
from sightline.files import atomic_write
from sightline.parsing import parse_json


def read_jsonl(path: Path, images: Path | None = None) -> CaptionDataset:
    """Our own format: a line per picture, paths relative to the file (or to `images`).

    `{"image": "kitten.jpg", "captions": ["a kitten sleeps"], "split": "train"}`, and optionally
    `"boxes": [{"label", "boxes": [[x0, y0, x1, y1]], "caption": 0, "span": [0, 2]}]` with boxes as
    fractions of the picture.
    """
    base = images or path.parent
    captioned_images = []
    for number, line in read_lines(path):
        where = f"{path}, line {number}"
        record = parse_json(line, where, DataError)
        name = field(record, "image", str, where)
        captions = field(record, "captions", list, where)
        if not all(isinstance(caption, str) for caption in captions):
            raise DataError(f"{where}: 'captions' must be a list of strings")
        captioned_images.append(
            CaptionedImage(
                name=name,
                picture=base / name,
                captions=tuple(captions),
                split=split_name(record.get("split"), where),
                groundings=tuple(
                    _grounding(box, len(captions), where)
                    for box in optional_field(record, "boxes", list, (), where)
                ),
                id=optional_field(record, "id", (int, str), name, where),
            )
        )
    return CaptionDataset(tuple(captioned_images), format="jsonl")


def _grounding(record: Any, captions: int, where: str) -> Grounding:
    boxes = field(record, "boxes", list, where)
    if not all(_is_box(box) for box in boxes):
        raise DataError(f"{where}: a box is four fractions x0 < x1, y0 < y1 between 0 and 1")
    caption, span = record.get("caption"), record.get("span")
    untied = caption is None and span is None
    if not (untied or (type(caption) is int and caption in range(captions) and _is_span(span))):
        raise DataError(
            f"{where}: a box has 'caption' (below {captions}) and 'span' (two token numbers, "
            "the second larger), or neither"
        )
    return Grounding(
        label=text_field(record, "label", where),
        boxes=tuple((float(a), float(b), float(c), float(d)) for a, b, c, d in boxes),
        caption=caption,
        span=None if span is None else (span[0], span[1]),
    )


def _is_span(span: Any) -> bool:
    if not (isinstance(span, list) and len(span) == 2):
        return False
    return all(type(token) is int for token in span) and 0 <= span[0] < span[1]


def _is_box(box: Any) -> bool:
    if not (isinstance(box, list) and len(box) == 4):
        return False
    if not all(isinstance(edge, int | float) and 0 <= edge <= 1 for edge in box):
        return False
    return bool(box[0] < box[2] and box[1] < box[3])


def write_jsonl(images: tuple[CaptionedImage, ...], path: Path) -> None:
    """Write pictures that are files as our JSONL, their paths relative to `path` where possible."""
    with atomic_write(path) as file:
        for image in images:
            if not isinstance(image.picture, Path):
                raise DataError(f"{image.name}: is in memory only; save the picture first")
            file.write(json.dumps(_record(image, path.parent), ensure_ascii=False) + "\n")


def _record(image: CaptionedImage, base: Path) -> dict[str, Any]:
    assert isinstance(image.picture, Path)
    picture, base = image.picture.absolute(), base.absolute()
    relative = picture.relative_to(base) if picture.is_relative_to(base) else picture
    record: dict[str, Any] = {
        "image": relative.as_posix(),
        "captions": list(image.captions),
        "split": image.split,
    }
    if image.id != record["image"]:
        record["id"] = image.id
    if image.groundings:
        record["boxes"] = [_box_record(grounding) for grounding in image.groundings]
    return record


def _box_record(grounding: Grounding) -> dict[str, Any]:
    record: dict[str, Any] = {"label": grounding.label, "boxes": [list(b) for b in grounding.boxes]}
    if grounding.span is not None:
        record |= {"caption": grounding.caption, "span": list(grounding.span)}
    return record
