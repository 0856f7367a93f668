"""A review as the files that other programs read: tables, sidecars, XMP, through bulk's formats."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sightline.bulk.formats import open_format
from sightline.bulk.items import Item
from sightline.bulk.records import Record, Row
from sightline.bulk.sidecars import Sidecars
from sightline.captions import Caption
from sightline.errors import ConfigError, PictureError
from sightline.review.collection import ACCEPTED, EDITED, Entry, Review

TABLES = ("csv", "jsonl")
SIDECARS = ("txt", "xmp")
_COLUMNS = ("decision", "captioner_said")


@dataclass(frozen=True)
class ReviewedRecord(Record):
    """A picture with the caption that a person decided on."""

    decision: str = ""
    of_captioner: Row | None = None  # what tables say of the captioner's own caption

    def row(self, attention: bool = False) -> Row:
        """The row of the captioner's caption, with the one to use in its place.

        The words and their verdicts are those of the captioner's caption, if it was not changed.
        """
        said = self.of_captioner or {}
        text = self.captions[0].text if self.captions else None
        own = text != said.get("caption")
        changed = {"log_probability": None, "words": None} if own else {}
        extra = {"decision": self.decision, "captioner_said": said.get("caption")}
        return {"path": self.item.name, **said, "caption": text, **changed, **extra}


@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    written: int = 0
    unchanged: int = 0
    kept: tuple[str, ...] = ()  # sidecars that somebody else wrote, and that were left alone

    def to_json(self) -> dict[str, Any]:
        return {"written": self.written, "unchanged": self.unchanged, "kept": list(self.kept)}


def records(review: Review, *, undecided: bool = False) -> Iterator[ReviewedRecord]:
    """The pictures that were accepted or edited; with `undecided`, all others as well."""
    for entry in review.entries():
        if undecided or entry.state in (ACCEPTED, EDITED):
            yield _record(review, entry)


def _record(review: Review, entry: Entry) -> ReviewedRecord:
    path = review.path(entry.id)
    assert path is not None
    of_captioner = review.row(entry.id)
    said = None if entry.state == "rejected" else entry.said
    captions = [] if said is None else [Caption(said, (), 0.0, 0.0, ())]
    return ReviewedRecord(
        Item.of_file(path, review.folder),
        of_captioner.get("sha256", ""),
        captions,
        of_captioner.get("model", ""),
        decision=entry.state,
        of_captioner=of_captioner,
    )


def export_table(review: Review, format: str, *, undecided: bool = False) -> Iterator[bytes]:
    """The lines of a table, `csv` or `jsonl`: with `undecided`, of every picture."""
    if format not in TABLES:
        raise ConfigError(f"no table is called '{format}'; choose {' or '.join(TABLES)}")
    form = open_format(Path(f"captions.{format}"), format, optional=_COLUMNS)
    yield form.header()
    for record in records(review, undecided=undecided):
        yield form.lines([record])


def export_sidecars(review: Review, format: str, output: Path | None = None) -> Exported:
    """Write a sidecar for each picture that was accepted or edited, beside it or below `output`.

    A sidecar whose text this review never gave is somebody else's, and stays as it is.
    """
    if format not in SIDECARS:
        raise ConfigError(f"no sidecar is called '{format}'; choose {' or '.join(SIDECARS)}")
    form = open_format(output or review.folder, format, overwrite=True)
    assert isinstance(form, Sidecars)
    exported = Exported()
    # Every picture in order, decided or not: that is how sidecars get their names.
    for entry in review.entries():
        record = _record(review, entry)
        path = form.path(record.item)
        if entry.state not in (ACCEPTED, EDITED):
            continue
        try:
            there = set(form.texts(path)) if path.exists() else set()
        except PictureError:
            exported = replace(exported, kept=(*exported.kept, entry.name))
            continue
        if there == {record.caption.text}:
            exported = replace(exported, unchanged=exported.unchanged + 1)
        elif there <= review.texts(entry.id):
            form.publish([record])
            exported = replace(exported, written=exported.written + 1)
        else:
            exported = replace(exported, kept=(*exported.kept, entry.name))
    return exported
