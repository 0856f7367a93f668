"""`sightline evaluate`."""

import csv
import json
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from sightline.cli.options import (
    console,
    data_option,
    dataset_for,
    images_option,
    json_option,
    no_repeat_option,
    print_json,
)
from sightline.cli.score_table import number, percent
from sightline.files import atomic_write


@click.command("evaluate")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--split", default="test", show_default=True)
@data_option
@images_option
@click.option(
    "--stage",
    type=click.IntRange(1),
    help="What this stage of the run ended with, before the next one; default: the best of all.",
)
@click.option("--beam", type=click.IntRange(1), help="Width of the search; default: the model's.")
@click.option("--length-power", type=float, help="Default: the model's.")
@no_repeat_option
@click.option(
    "--metrics",
    default="bleu,rouge-l,cider-d,meteor",
    show_default=True,
    help="As sightline score takes them.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the captions (COCO results format), the scores and the per-image table; "
    "default: evaluation-SPLIT (and -stage-N) in the run; of several runs, or none, here.",
)
@json_option
def command(
    runs: tuple[Path, ...],
    split: str,
    data: Path | None,
    images: Path | None,
    stage: int | None,
    beam: int | None,
    length_power: float | None,
    no_repeat: int | None,
    metrics: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Caption a split with the best checkpoints of RUNS, and score the captions.

    Several runs caption together: their next-word probabilities are averaged. Regions come from
    the cache; pictures that are not in it yet are encoded first. Without RUNS it is the captioner
    that comes with Sightline that is evaluated, on --data.
    """
    from sightline.captioner import Captioner
    from sightline.checkpoint import find_checkpoint
    from sightline.data.encode import encode_all
    from sightline.metrics.diversity import diversity
    from sightline.metrics.report import measure
    from sightline.training.captioning import caption_cached

    dataset, root = dataset_for(runs[0] if runs else None, data, images)
    chosen = dataset.split(split)
    captioner = Captioner.load(*(find_checkpoint(run, stage) for run in runs or [None]))
    wishes = {"beam": beam, "length_power": length_power, "no_repeat_ngram": no_repeat}
    options = captioner.options.changed(
        {name: value for name, value in wishes.items() if value is not None}
    )
    cache = encode_all(
        [image.picture for image in chosen], captioner.encoder, root, show_progress=True
    )
    captions = caption_cached(
        captioner.model, captioner.vocabulary, chosen, cache, options, show_progress=True
    )
    # Written before they are scored: a metric that is not installed should not cost the captions.
    folder = output or (runs[0] if len(runs) == 1 else Path()) / (
        f"evaluation-{split}" + (f"-stage-{stage}" if stage else "")
    )
    with atomic_write(folder / "captions.json") as file:
        rows = zip(chosen, captions, strict=True)
        json.dump([{"image_id": i.id, "caption": c} for i, c in rows], file, ensure_ascii=False)
    scores = measure(captions, [image.captions for image in chosen], metrics.split(","))
    with atomic_write(folder / "per-image.csv") as file:
        writer = csv.writer(file)
        writer.writerow(["image_id", "caption", *(score.name for score in scores)])
        for row, (image, caption) in enumerate(zip(chosen, captions, strict=True)):
            values = (number(round(float(score.per_image[row]), 6)) for score in scores)
            writer.writerow([image.id, caption, *values])
    summary: dict[str, Any] = {
        "split": split,
        "pictures": len(chosen),
        "beam": options.beam,
        "length_power": options.length_power,
        "no_repeat_ngram": options.constraints.no_repeat_ngram,
        "scores": {score.name: number(score.corpus) for score in scores},
        # Captions trained on rewards are known to end in "with a" and the like.
        "bad_endings": diversity(captions).bad_endings,
    }
    with atomic_write(folder / "scores.json") as file:
        json.dump(summary, file, indent=1)
    if as_json:
        print_json(summary)
        return
    table = Table("metric", f"{split}, {len(chosen):,} pictures", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for score in scores:
        table.add_row(escape(score.name), percent(score.corpus))
    table.add_row("bad endings", percent(summary["bad_endings"]))
    console.print(table)
    console.print(f"\nCaptions, scores and a table per picture are in {escape(str(folder))}.")
