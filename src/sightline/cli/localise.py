"""`sightline localise`."""

from pathlib import Path

import click

from sightline.cli.options import (
    boxes_option,
    data_option,
    dataset_for,
    device_option,
    images_option,
    json_option,
    print_json,
)
from sightline.files import atomic_write

_PAGE = """\
# Is relevance on the object that a word names?

`{command}`

Each captioner captioned the {split} split. Every word of its captions that names an object with
boxes was explained by each method. All numbers are percentages:

| column | what it is |
| --- | --- |
| area | share of the picture that the boxes cover: what uniform relevance would score |
| inside | share of positive relevance inside the boxes (paper 4, eq. 9), mean over words; \
in parentheses, the 95 % bootstrap interval over pictures |
| above attention | *inside* minus that of attention, on the same words |
| regions | *inside*, for relevance of the encoder's regions instead of pixels |
| negative | share of negative relevance inside the boxes; 0 where there is none |
| pointed | how often the most relevant pixel is inside a box (the pointing game) |

{table}"""


@click.command("localise")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--split", default="test", show_default=True, help="Split to caption.")
@data_option
@images_option
@boxes_option
@device_option
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="Explanation method. Repeat for several. Default: attention, grad_cam, guided_grad_cam, "
    "lrp.",
)
@click.option(
    "--pictures",
    type=click.IntRange(1),
    help="Use only the first pictures of the split, this many. Default: all.",
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Plot the share inside the boxes by threshold to this .png, .pdf or .svg file.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the table to this Markdown file instead of printing it.",
)
@json_option
def command(
    runs: tuple[Path, ...],
    split: str,
    data: Path | None,
    images: Path | None,
    boxes: Path | None,
    device: str,
    methods: tuple[str, ...],
    pictures: int | None,
    figure: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure how much of a word's relevance lies on the object that the word names, for RUNS.

    Synthetic scenes include boxes; for other datasets, give them with --boxes.
    """
    from sightline.captioner import Captioner
    from sightline.checkpoint import find_checkpoint, load_config
    from sightline.data.boxes import read_boxes
    from sightline.evaluation.localisation import (
        COMPARED,
        RunLocalisation,
        localise,
        plot,
        tabulate,
        to_markdown,
    )

    localisations = []
    for run in runs:
        dataset, _ = dataset_for(run, data, images)
        if boxes is not None and not any(image.groundings for image in dataset):
            dataset = read_boxes(boxes, dataset)
        measured = localise(
            Captioner.load(run, device=device),
            dataset.split(split)[:pictures],
            methods or COMPARED,
            show_progress=True,
        )
        model = load_config(find_checkpoint(run))["model"]["name"]
        localisations.append(RunLocalisation(run.name, model, measured))
    if figure is not None:
        plot(localisations, figure)
    rows = tabulate(localisations)
    if as_json:
        print_json(rows)
        return
    table = to_markdown(rows)
    if output is None:
        click.echo(table, nl=False)
        return
    words = ["sightline localise", *(f"runs/{run.name}" for run in runs), f"--split {split}"]
    words += [] if boxes is None else [f"--boxes {boxes.name}"]
    words += [f"--method {method}" for method in methods]
    words += [] if pictures is None else [f"--pictures {pictures}"]
    words += [] if figure is None else [f"--figure {figure.name}"]
    page = _PAGE.format(command=" ".join([*words, f"-o {output.name}"]), split=split, table=table)
    if figure is not None:
        alt = "Share of relevance inside the boxes, by threshold; dashed: negative relevance"
        page += f"\n![{alt}]({figure.name})\n"
    with atomic_write(output) as file:
        file.write(page)
