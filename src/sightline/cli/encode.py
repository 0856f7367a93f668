"""`sightline encode`."""

import sys
from pathlib import Path

import click

from sightline.cli.options import (
    dataset_argument,
    device_option,
    images_option,
    json_option,
    open_dataset,
    print_json,
)
from sightline.printing import printable


@click.command("encode")
@dataset_argument
@images_option
@click.option(
    "--encoder",
    metavar="NAME",
    default="efficientnet_lite0",
    show_default=True,
    help="Image encoder, as listed by `sightline encoders`. NAME+NAME uses two side by side.",
)
@click.option(
    "--stage", help="Network stage to take regions from. Default: depends on the encoder."
)
@click.option("--size", type=int, help="Input size in pixels. Default: depends on the encoder.")
@click.option(
    "--fit",
    type=click.Choice(["squash", "crop"]),
    default="squash",
    show_default=True,
    help="Squash the whole picture into a square, or crop the square in its centre.",
)
@click.option(
    "--weights", type=click.Path(path_type=Path), help="Weights file in torchvision's layout."
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Folder for region caches. Default: in the user's cache.",
)
@click.option(
    "--split", "splits", multiple=True, help="Encode only this split. Repeat for several."
)
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=32,
    show_default=True,
    help="Pictures per forward pass.",
)
@click.option(
    "--workers",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="Processes that load pictures.",
)
@click.option(
    "--precision",
    type=click.Choice(["32", "bf16"]),
    default="32",
    show_default=True,
    help="Number format of the encoder. bf16 is faster on processors that have it; its cache is "
    "for recipes with encoder.precision: bf16.",
)
@device_option
@json_option
def command(
    dataset: Path,
    images: Path | None,
    encoder: str,
    stage: str | None,
    size: int | None,
    fit: str,
    weights: Path | None,
    cache: Path | None,
    precision: str,
    splits: tuple[str, ...],
    batch_size: int,
    workers: int,
    device: str,
    as_json: bool,
) -> None:
    """Encode every picture of DATASET once, into a cache that training and evaluation read.

    You can interrupt it at any time: the same command continues where it stopped. Pictures that
    cannot be read are reported and skipped (exit code 1).
    """
    captions = open_dataset(dataset, images)
    chosen = [image for name in splits for image in captions.split(name)] if splits else captions
    pictures = [image.picture for image in chosen]

    from sightline.devices import choose_device
    from sightline.encoders.encode import encode_pictures
    from sightline.encoders.encoder import create_encoder
    from sightline.encoders.region_cache import RegionCache

    place = choose_device(device)  # (before the weights are read, which takes longer)
    network = create_encoder(encoder, stage=stage, size=size, fit=fit, weights=weights)  # type: ignore[arg-type]
    regions = RegionCache.for_encoder(network, cache, "bf16" if precision == "bf16" else 32)
    before = len(regions)
    errors = encode_pictures(
        pictures,
        network.to(place),
        regions,
        batch_size=batch_size,
        workers=workers,
        show_progress=True,
    )
    for error in errors:
        click.echo(f"sightline: left out: {printable(error)}", err=True)
    if as_json:
        print_json({"cache": str(regions.folder), "added": len(regions) - before, "errors": errors})
    else:
        rows, columns = regions.grid
        click.echo(
            f"{len(regions) - before:,} pictures added, "
            f"{len(regions):,} in {printable(regions.folder)} "
            f"({rows} x {columns} regions of {regions.dim} numbers each)"
        )
    sys.exit(bool(errors))
