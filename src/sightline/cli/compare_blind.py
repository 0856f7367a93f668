"""`sightline compare-blind`."""

from pathlib import Path
from typing import Any

import click

from sightline.cli.options import device_option, folder_option, pictures_option
from sightline.printing import printable

_path = click.Path(path_type=Path)


@click.command("compare-blind")
@click.argument("first", type=_path)
@click.argument("second", type=_path)
@click.option("--images", type=_path, required=True, help="Folder of the pictures.")
@folder_option("A new folder for the study.", required=True)
@pictures_option("Draw this many pictures at random. Default: all that both systems captioned.")
@click.option(
    "--rater",
    "raters",
    multiple=True,
    metavar="NAME",
    help="Someone who will rate, with a link of their own. Repeat for several. Default: one.",
)
@click.option(
    "--question",
    "questions",
    multiple=True,
    metavar="NAME=TEXT",
    help="A question of your own. Repeat for several. Default: naturalness, relevance, richness.",
)
@click.option(
    "--name",
    "names",
    nargs=2,
    metavar="FIRST SECOND",
    help="What to call the systems in the results. Default: their files.",
)
@click.option(
    "--each",
    type=click.IntRange(1),
    help="How many raters see each pair. Default: all of them.",
)
@click.option(
    "--checks",
    type=click.IntRange(0),
    help="Attention checks: pairs with a known answer. Default: one for twenty pairs, at least 2.",
)
@click.option(
    "--as-written",
    is_flag=True,
    help="Show captions as they are. Default: all begin with a capital and end without a full "
    "stop, so that spelling does not tell the systems apart.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Which pictures are drawn.")
@device_option
def command(
    first: Path,
    second: Path,
    images: Path,
    output: Path,
    pictures: int | None,
    raters: tuple[str, ...],
    questions: tuple[str, ...],
    names: tuple[str, str] | None,
    each: int | None,
    checks: int | None,
    as_written: bool,
    seed: int,
    device: str,
) -> None:
    """Set up a blind comparison of the captions of FIRST and SECOND by people.

    A system is a file of captions (COCO results .json, .jsonl or .csv, such as sightline caption
    -o writes) or a training run, which captions the pictures now. `sightline serve --blind FOLDER`
    then shows each rater pairs of captions in random order and on random sides, and `sightline
    experiment paper0-table4 FOLDER` reads the answers.
    """
    from sightline.blind.compare import compare_blind
    from sightline.blind.study import QUESTIONS

    study = compare_blind(
        *(first, second, images, output),
        raters=raters or ("rater 1",),
        questions=[_question(text) for text in questions] or QUESTIONS,
        names=names,
        pictures=pictures,
        checks=checks,
        each=each,
        as_written=as_written,
        seed=seed,
        device=device,
        show_progress=True,
    )
    same = f", {len(study.identical)} with the same caption left out" if study.identical else ""
    click.echo(
        f"{printable(output)}: {len(study.pairs)} pairs{same}, {len(study.checks)} attention "
        f"checks, {len(study.raters)} raters, questions: "
        f"{', '.join(printable(question.name) for question in study.questions)}"
    )
    click.echo(f"Next: sightline serve --blind {printable(output)} prints a link for each rater.")


def _question(text: str) -> Any:
    from sightline.blind.study import Question
    from sightline.errors import ConfigError

    name, equals, asked = (part.strip() for part in text.partition("="))
    if not (name and equals and asked):
        raise ConfigError(f"--question {text}: must be a name, an equals sign and a question")
    return Question(name, asked)
