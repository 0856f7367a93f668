"""`sightline export`."""

from pathlib import Path

import click

from sightline.printing import printable


@click.command("export")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option("--onnx", is_flag=True, required=True, help="As ONNX, for programs without torch.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to.",
)
def command(run: Path | None, onnx: bool, output: Path) -> None:
    """Write RUN's captioner (default: the bundled one) for other programs.

    With --onnx: encoder.onnx, step.onnx and captioner.json. See examples/onnx_caption.py.
    """
    from sightline.captioner import Captioner
    from sightline.onnx_export import export_onnx

    export_onnx(Captioner.load(*([run] if run else []), device="cpu"), output)
    size = sum(file.stat().st_size for file in output.iterdir())
    click.echo(f"{printable(output)}: {size / 1e6:.1f} MB")
