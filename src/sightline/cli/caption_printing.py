"""What `sightline caption` shows at the terminal."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from sightline.bulk.items import Item
from sightline.bulk.records import Failure, Record
from sightline.bulk.sink import Sink
from sightline.captioner import Captioner
from sightline.captions import DOUBTFUL, NOT_SUPPORTED, UNFAMILIAR
from sightline.cli.options import json_text, new_name
from sightline.printing import printable

if TYPE_CHECKING:
    from sightline.captions import Caption, Word


class Printed(Sink):
    """Captions on standard output, as lines or as a JSON array; failures on standard error."""

    def __init__(
        self,
        captioner: Captioner,
        figure: Path | None,
        as_json: bool,
        attention: bool,
        doubtful: bool = False,
    ) -> None:
        self.captioner, self.figure, self.doubtful = captioner, figure, doubtful
        self.keeps_content = figure is not None  # which is drawn upon the picture
        self.as_json, self.attention = as_json, attention
        self._written = 0
        self._figures: set[str] = set()

    def write(self, records: Sequence[Record], failures: Sequence[Failure]) -> None:
        for failure in failures:
            click.echo(f"sightline: skipped: {printable(failure.error)}", err=True)
        for record in records:
            if self.figure is not None:
                self._draw(record, self.figure)
            if self.as_json:
                line = json_text(self._to_json(record))
                click.echo(f"{',' if self._written else '['}\n{line}", nl=False)
            else:
                click.echo("\n".join(_lines(record, self.doubtful)))
            self._written += 1

    def finish(self) -> None:
        if self.as_json:
            click.echo("\n]" if self._written else "[]")

    def _draw(self, record: Record, folder: Path) -> None:
        caption = record.captions[0]
        if self.captioner.encoder.sees_pixels:  # the batch holds only what the encoder sees
            image = self.captioner.open(record.item.read())
            caption = dataclasses.replace(caption, picture=image)
        caption.plot(self._figure_path(record.item, folder))

    def _figure_path(self, item: Item, folder: Path) -> Path:
        """A name of its own for each figure: a second `dog` becomes `dog-2`."""
        parts = [part for part in PurePosixPath(item.inside).parts if part not in ("/", "..")]
        path = folder.joinpath(*parts).with_suffix("")
        return Path(f"{new_name(str(path), self._figures)}.png")

    def _to_json(self, record: Record) -> dict[str, Any]:
        content: dict[str, Any] = {"picture": record.item.name}
        content["captions"] = [self._caption(caption) for caption in record.captions]
        if record.avoided is not None:
            content["avoided"] = list(record.avoided)
            content["without_unsupported"] = record.without and self._caption(record.without)
        return content

    def _caption(self, caption: "Caption") -> dict[str, Any]:
        content = caption.to_json()
        if not self.attention:  # most of the bytes, and nothing that a person reads
            del content["boxes"]
            for word in content["words"]:
                del word["attention"]
        return content


def _lines(record: Record, doubtful: bool) -> list[str]:
    several, name = len(record.captions) > 1, printable(record.item.name)
    lines = [
        f"{name}: {mark(caption, doubtful)}" + (f"  ({caption.score:.2f})" if several else "")
        for caption in record.captions
    ]
    if record.without is not None:
        words = printable(", ".join(record.avoided or ()))
        how = f"without {words}" if words else "better supported"
        lines.append(f"{name}, {how}: {mark(record.without, doubtful)}")
    if record.captions[0].unfamiliar:
        lines.append(f"{name}, unfamiliar: {UNFAMILIAR}")
    return lines


def mark(caption: "Caption", doubtful: bool = False) -> str:
    """The caption's text, with marks on unsupported words, and on doubtful ones if asked for.

    The marks are readable without the colours that a terminal adds.
    """
    return " ".join(_mark_word(word, doubtful) for word in caption.words)


def _mark_word(word: "Word", doubtful: bool) -> str:
    text = printable(word.text)
    if word.support is not None and word.support.verdict == NOT_SUPPORTED:
        return click.style(f"[not seen: {text}]", fg="red")
    if doubtful and word.support is not None and word.support.verdict == DOUBTFUL:
        return click.style(f"{text}(?)", fg="yellow")
    return text
