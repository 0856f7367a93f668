"""`sightline pack`."""

from pathlib import Path

import click

from sightline.cli.options import no_repeat_option
from sightline.errors import ConfigError
from sightline.files import CONFIG_BYTES
from sightline.parsing import read_text
from sightline.printing import printable


@click.command("pack")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write the checkpoint to. An existing checkpoint is replaced.",
)
@click.option(
    "--phase",
    "--stage",
    "phase",
    type=click.IntRange(1),
    help="Export the checkpoint at the end of this training phase. Default: the best checkpoint.",
)
@click.option(
    "--card",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Model card (Markdown) to use instead of the one that training wrote.",
)
@click.option(
    "--length-power", type=float, help="Length penalty to store for decoding; choose it on dev."
)
@no_repeat_option
def command(
    runs: tuple[Path, ...],
    output: Path,
    phase: int | None,
    card: Path | None,
    length_power: float | None,
    no_repeat: int | None,
) -> None:
    """Export RUN's best checkpoint for sharing: half precision, without training state.

    With several runs or checkpoint folders, exports the average of their weights. It is often
    better than any one of them: for example, the average of the checkpoints before and after
    self-critical training. A checkpoint given twice counts twice. The picture size is that of the
    first one.
    """
    from sightline.checkpoint import find_checkpoint, pack_checkpoint

    text = None if card is None else read_text(card, CONFIG_BYTES, ConfigError)
    sources = [find_checkpoint(run, phase) for run in runs]
    wishes = {"length_power": length_power, "no_repeat_ngram": no_repeat}
    decoding = {name: value for name, value in wishes.items() if value is not None}
    pack_checkpoint(sources, output, text, **decoding)
    size = sum(file.stat().st_size for file in output.iterdir())
    click.echo(f"{printable(output)}: {size / 1e6:.1f} MB")
