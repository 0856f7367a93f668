"""`sightline caption`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sightline.cli.options import (
    device_option,
    find_pictures,
    json_option,
    models_option,
    no_repeat_option,
    print_json,
    require_a_picture,
)
from sightline.errors import PictureError
from sightline.printing import printable

if TYPE_CHECKING:
    from sightline.captions import Caption, Word

_BATCH = 16


@click.command("caption")
@click.argument("pictures", nargs=-1, required=True)
@models_option
@device_option
@click.option("--beam", type=click.IntRange(1), help="Beam width. Default: stored with the model.")
@click.option("--n-best", type=click.IntRange(1), default=1, help="Number of captions per picture.")
@click.option("--groups", type=click.IntRange(1), default=1, help="Groups for diverse beam search.")
@click.option(
    "--max-length",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Longest caption, in words.",
)
@no_repeat_option
@click.option("--avoid", multiple=True, metavar="WORD", help="A word that must not appear.")
@click.option("--require", multiple=True, metavar="WORD", help="A word that must appear.")
@click.option(
    "--figure",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a figure of each word's attention into this folder, one per picture.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Mark words that are doubtful or that the picture does not support.",
)
@click.option(
    "--avoid-unsupported",
    is_flag=True,
    help="Check each caption, then caption again without the unsupported words.",
)
@json_option
def command(
    pictures: tuple[str, ...],
    models: tuple[Path, ...],
    device: str,
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

    With --check, unsupported words are shown as [not seen: word] and doubtful ones as word(?).
    The bundled captioner can check its words; for others, run sightline fit-support once.

    Pictures that cannot be read are reported and skipped (exit code 1).
    """
    paths = list(find_pictures(pictures))
    require_a_picture(paths, models)
    from sightline.captioner import Captioner

    captioner = Captioner.load(*models, device=device)
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
                # Features of a detector are looked up by the picture's name.
                read = captioner.open if captioner.encoder.sees_pixels else captioner.encode
                opened.append((path, read(path)))
            except PictureError as error:
                click.echo(f"sightline: skipped: {printable(error)}", err=True)
                skipped = True
        encoded = captioner.encode([image for _, image in opened])
        by_picture = captioner.captions(encoded, **options)
        for (path, _), picture, captions in zip(opened, encoded, by_picture, strict=True):
            if figure is not None:
                captions[0].plot(figure / f"{path.stem}.png")
            record: dict[str, Any] = {"picture": str(path)}
            record["captions"] = [caption.to_json() for caption in captions]
            lines = [
                f"{printable(path)}: {mark(caption)}"
                + (f"  ({caption.score:.2f})" if n_best > 1 else "")
                for caption in captions
            ]
            if avoid_unsupported:
                avoided, again = captioner.caption_without_unsupported(
                    picture, captions[0], **options
                )
                if again is not None:
                    words = printable(", ".join(avoided))
                    lines.append(f"{printable(path)}, without {words}: {mark(again)}")
                record["avoided"] = avoided
                record["without_unsupported"] = again and again.to_json()
            if as_json:
                records.append(record)
            else:
                click.echo("\n".join(lines))
    if as_json:
        print_json(records)
    sys.exit(skipped)


def mark(caption: "Caption") -> str:
    """The caption's text, with marks on doubtful and unsupported words.

    The marks are readable without the colours that a terminal adds.
    """
    return " ".join(_mark_word(word) for word in caption.words)


def _mark_word(word: "Word") -> str:
    text = printable(word.text)
    if word.support is None or word.support.verdict == "seen":
        return text
    if word.support.verdict == "doubtful":
        return click.style(f"{text}(?)", fg="yellow")
    return click.style(f"[not seen: {text}]", fg="red")
