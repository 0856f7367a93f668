"""Reference captions of the pictures of an audit, where there are any."""

from collections.abc import Sequence
from pathlib import Path

from sightline.data.dataset import CaptionDataset
from sightline.errors import DataError
from sightline.kept_records import Record
from sightline.metrics.score import Score
from sightline.metrics.scoring import DEFAULT, score


def match_references(
    records: Sequence[Record], dataset: CaptionDataset, source: Path
) -> list[tuple[str, ...]]:
    """The references of each picture: empty where the dataset does not have it."""
    known: dict[str, tuple[str, ...]] = {}
    for image in dataset:
        texts = tuple(text for text in image.captions if text.strip())
        for name in (image.name, str(image.id), Path(image.name).name, Path(image.name).stem):
            known.setdefault(name, texts)
    found = [
        next((known[name] for name in _names(record) if name in known), ()) for record in records
    ]
    if not any(found):
        raise DataError(f"{source}: has none of the pictures that were captioned")
    return found


def _names(record: Record) -> list[str]:
    names = [record["picture"], Path(record["picture"]).name]
    if record["file"] is not None:
        names += [Path(record["file"]).name, Path(record["file"]).stem]
    return names


def reference_scores(
    records: Sequence[Record],
    references: Sequence[Sequence[str]],
    system: int,
    metrics: Sequence[str] = DEFAULT,
) -> list[Score]:
    """The metrics of a system's first caption of each picture that has references."""
    candidates: list[str] = []
    said_of: list[Sequence[str]] = []
    for record, texts in zip(records, references, strict=True):
        said = [each["text"] for each in record["captions"] if each["system"] == system]
        if said and texts:
            candidates.append(said[0])
            said_of.append(texts)
    return [*score(candidates, said_of, metrics).values()] if candidates else []
