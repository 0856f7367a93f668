"""`sightline pack`."""

from pathlib import Path

import click

from sightline.cli.options import no_repeat_option


@click.command("pack")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the checkpoint; one that is there is replaced.",
)
@click.option(
    "--phase", "--stage", "phase", type=click.IntRange(1), help="As in sightline evaluate."
)
@click.option(
    "--card",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A model card (Markdown) instead of the one that training wrote.",
)
@click.option("--length-power", type=float, help="That it is to decode with, chosen on dev.")
@no_repeat_option
def command(
    runs: tuple[Path, ...],
    output: Path,
    phase: int | None,
    card: Path | None,
    length_power: float | None,
    no_repeat: int | None,
) -> None:
    """Make of the best checkpoint of RUN one to give away: half as large, no training state.

    Of several runs, or folders of checkpoints, it has the means of their weights, which are often
    better than any of them: say, of where self-critical training began and where it ended. One
    that is named twice weighs double; pictures are read at the size that the first one read.
    """
    from sightline.checkpoint import find_checkpoint, pack_checkpoint

    text = None if card is None else card.read_text("utf-8")
    sources = [find_checkpoint(run, phase) for run in runs]
    wishes = {"length_power": length_power, "no_repeat_ngram": no_repeat}
    decoding = {name: value for name, value in wishes.items() if value is not None}
    pack_checkpoint(sources, output, text, **decoding)
    size = sum(file.stat().st_size for file in output.iterdir())
    click.echo(f"{output}: {size / 1e6:.1f} MB")
