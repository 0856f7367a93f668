"""`sightline caption`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sightline.cli.options import (
    find_pictures,
    json_option,
    models_option,
    no_repeat_option,
    print_json,
)
from sightline.errors import PictureError

if TYPE_CHECKING:
    from PIL.Image import Image

    from sightline.captioner import Captioner
    from sightline.captions import Caption, Word

_BATCH = 16


@click.command("caption")
@click.argument("pictures", nargs=-1, required=True)
@models_option
@click.option("--beam", type=click.IntRange(1), help="Width of the search; default: the model's.")
@click.option("--n-best", type=click.IntRange(1), default=1, help="Captions per picture.")
@click.option("--groups", type=click.IntRange(1), default=1, help="Groups of diverse beams.")
@click.option("--max-length", type=click.IntRange(1), default=20, show_default=True)
@no_repeat_option
@click.option("--avoid", multiple=True, metavar="WORD", help="A word that must not appear.")
@click.option("--require", multiple=True, metavar="WORD", help="A word that must appear.")
@click.option(
    "--figure",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for a figure per picture: what every word looked at.",
)
@click.option(
    "--check", is_flag=True, help="Mark words that the picture does not support, and doubtful ones."
)
@click.option(
    "--avoid-unsupported",
    is_flag=True,
    help="Check, and caption again without the words that the picture does not support.",
)
@json_option
def command(
    pictures: tuple[str, ...],
    models: tuple[Path, ...],
    beam: int | None,
    n_best: int,
    groups: int,
    max_length: int,
    no_repeat: int | None,
    avoid: tuple[str, ...],
    require: tuple[str, ...],
    figure: Path | None,
    check: bool,
    avoid_unsupported: bool,
    as_json: bool,
) -> None:
    """Caption PICTURES: files, folders or patterns such as 'holiday/*.jpg'.

    With --check, a word that the picture does not support is shown as [not seen: word], and a
    doubtful one as word(?). The checkpoint must have been fitted for it, by sightline fit-support.

    A picture that cannot be read is named and skipped (exit code 1).
    """
    paths = list(find_pictures(pictures))
    from sightline.captioner import Captioner

    captioner = Captioner.load(*models)
    options: dict[str, Any] = {
        "n_best": n_best,
        "groups": groups,
        "max_length": max_length,
        "avoid": avoid,
        "require": require,
        "check": check or avoid_unsupported,
    }
    wishes = {"beam": beam, "no_repeat_ngram": no_repeat}
    options |= {name: value for name, value in wishes.items() if value is not None}
    skipped = False
    records = []
    for start in range(0, len(paths), _BATCH):
        opened = []
        for path in paths[start : start + _BATCH]:
            try:
                opened.append((path, captioner.open(path)))
            except PictureError as error:
                click.echo(f"sightline: skipped: {error}", err=True)
                skipped = True
        found = captioner.captions([picture for _, picture in opened], **options)
        for (path, picture), captions in zip(opened, found, strict=True):
            if figure is not None:
                captions[0].plot(figure / f"{path.stem}.png")
            record: dict[str, Any] = {"picture": str(path)}
            record["captions"] = [caption.to_json() for caption in captions]
            lines = [
                f"{path}: {mark(caption)}" + (f"  ({caption.score:.2f})" if n_best > 1 else "")
                for caption in captions
            ]
            if avoid_unsupported:
                avoided, again = _caption_again(captioner, picture, captions[0], options)
                if again is not None:
                    lines.append(f"{path}, without {', '.join(avoided)}: {mark(again)}")
                record["avoided"] = avoided
                record["without_unsupported"] = again and again.to_json()
            if as_json:
                records.append(record)
            else:
                click.echo("\n".join(lines))
    if as_json:
        print_json(records)
    sys.exit(skipped)


def _caption_again(
    captioner: "Captioner", picture: "Image", caption: "Caption", options: dict[str, Any]
) -> tuple[list[str], "Caption | None"]:
    """The words that the picture does not support, and its best caption without them.

    What the user requires stays, supported or not; where nothing is to be avoided, there is None.
    """
    unsupported = {word.text for word in caption.unsupported}
    avoided = sorted(unsupported.difference(options["require"]))
    if not avoided:
        return [], None
    changed = {**options, "avoid": (*options["avoid"], *avoided), "n_best": 1}
    return avoided, captioner.captions([picture], **changed)[0][0]


def mark(caption: "Caption") -> str:
    """The caption's text, with marks on words that were checked and found wanting.

    They can be read without the colours that a terminal adds.
    """
    return " ".join(_mark_word(word) for word in caption.words)


def _mark_word(word: "Word") -> str:
    if word.support is None or word.support.verdict == "seen":
        return word.text
    if word.support.verdict == "doubtful":
        return click.style(f"{word.text}(?)", fg="yellow")
    return click.style(f"[not seen: {word.text}]", fg="red")
