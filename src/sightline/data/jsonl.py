"""Our own caption format: JSON lines, one per picture."""

import json
from pathlib import Path
from typing import Any

from sightline.data.dataset import CaptionDataset, CaptionedImage, Grounding
from sightline.data.fields import field, read_text, split_name
from sightline.errors import DataError
from sightline.files import atomic_write


def read_jsonl(path: Path, images: Path | None = None) -> CaptionDataset:
    """Our own format: a line per picture, paths relative to the file (or to `images`).

    `{"image": "kitten.jpg", "captions": ["a kitten sleeps"], "split": "train"}`, and optionally
    `"boxes": [{"label", "boxes": [[x0, y0, x1, y1]], "caption": 0, "span": [0, 2]}]` with boxes as
    fractions of the picture.
    """
    base = images or path.parent
    found = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{where}: not JSON ({error.msg} at column {error.colno})") from None
        name = field(record, "image", str, where)
        captions = field(record, "captions", list, where)
        if not all(isinstance(caption, str) for caption in captions):
            raise DataError(f"{where}: 'captions' must be a list of strings")
        found.append(
            CaptionedImage(
                name=name,
                picture=base / name,
                captions=tuple(captions),
                split=split_name(record.get("split"), where),
                groundings=tuple(_grounding(box, where) for box in record.get("boxes") or ()),
                id=record.get("id", name),
            )
        )
    return CaptionDataset(tuple(found), format="jsonl")


def _grounding(record: Any, where: str) -> Grounding:
    boxes = field(record, "boxes", list, where)
    if not all(_is_box(box) for box in boxes):
        raise DataError(f"{where}: a box is four fractions x0 < x1, y0 < y1 between 0 and 1")
    span = record.get("span")
    return Grounding(
        label=field(record, "label", str, where),
        boxes=tuple((float(a), float(b), float(c), float(d)) for a, b, c, d in boxes),
        caption=record.get("caption"),
        span=None if span is None else (int(span[0]), int(span[1])),
    )


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
    picture, base = image.picture.resolve(), base.resolve()
    relative = picture.relative_to(base) if picture.is_relative_to(base) else picture
    record: dict[str, Any] = {
        "image": relative.as_posix(),
        "captions": list(image.captions),
        "split": image.split,
    }
    if image.id != image.name:
        record["id"] = image.id
    if image.groundings:
        record["boxes"] = [_box_record(grounding) for grounding in image.groundings]
    return record


def _box_record(grounding: Grounding) -> dict[str, Any]:
    record: dict[str, Any] = {"label": grounding.label, "boxes": [list(b) for b in grounding.boxes]}
    if grounding.span is not None:
        record |= {"caption": grounding.caption, "span": list(grounding.span)}
    return record
