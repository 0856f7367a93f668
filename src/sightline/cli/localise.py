"""`sightline localise`."""

from pathlib import Path

import click

from sightline.cli.options import (
    boxes_option,
    data_option,
    dataset_for,
    images_option,
    json_option,
    print_json,
)
from sightline.files import atomic_write

_PAGE = """\
# Is relevance where the thing is?

`{command}`

Captioners captioned the {split} split, and every word of theirs that names something with boxes was
explained by each method. All in percent:

| column | what it is |
| --- | --- |
| area | the boxes' share of the picture: what relevance spread evenly would have inside |
| inside | the share of positive relevance inside the boxes (paper 4, eq. 9), the mean over words; \
in brackets what 95 of 100 draws of pictures give |
| above attention | how much more than attention has inside, of the same words |
| regions | *inside*, if relevance stops at the encoder's regions, as attention does |
| negative | the share inside of what speaks against the word; 0 where nothing does |
| pointed | how often the most relevant pixel is inside (the pointing game) |

{table}"""


@click.command("localise")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--split", default="test", show_default=True)
@data_option
@images_option
@boxes_option
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="A method of explanation; give several. Default: attention, grad_cam, guided_grad_cam, "
    "lrp.",
)
@click.option("--pictures", type=click.IntRange(1), help="So many pictures; default: all.")
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw shares by threshold into this .png, .pdf or .svg.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Markdown file to write the table into; default: print it.",
)
@json_option
def command(
    runs: tuple[Path, ...],
    split: str,
    data: Path | None,
    images: Path | None,
    boxes: Path | None,
    methods: tuple[str, ...],
    pictures: int | None,
    figure: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure, for RUNS, how much relevance of a word lies on the thing that it names.

    Scenes have boxes of their own; `--boxes` is for datasets that have none.
    """
    from sightline.captioner import Captioner
    from sightline.checkpoint import find_checkpoint, load_config
    from sightline.data.boxes import read_boxes
    from sightline.evaluation.localisation import (
        METHODS,
        RunLocalisation,
        localise,
        plot,
        tabulate,
        to_markdown,
    )

    found = []
    for run in runs:
        dataset, _ = dataset_for(run, data, images)
        if boxes is not None and not any(image.groundings for image in dataset):
            dataset = read_boxes(boxes, dataset)
        measured = localise(
            Captioner.load(run),
            dataset.split(split)[:pictures],
            methods or METHODS,
            show_progress=True,
        )
        model = load_config(find_checkpoint(run))["model"]["name"]
        found.append(RunLocalisation(run.name, model, measured))
    if figure is not None:
        plot(found, figure)
    rows = tabulate(found)
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
        page += f"\n![Shares by threshold; dashed: what speaks against the word]({figure.name})\n"
    with atomic_write(output) as file:
        file.write(page)
