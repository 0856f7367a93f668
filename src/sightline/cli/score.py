"""`sightline score`."""

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sightline.cli.options import console, images_option, json_option, print_json
from sightline.cli.score_table import difference_table, score_table
from sightline.errors import DataError
from sightline.evaluation.scorable import Scorable, read_scorable, read_training
from sightline.files import atomic_write
from sightline.metrics import diversity, document_frequencies, self_cider
from sightline.metrics.bootstrap import Difference, compare
from sightline.metrics.diversity import Diversity
from sightline.metrics.frequencies import DocumentFrequencies
from sightline.metrics.score import Score, number
from sightline.metrics.scoring import DEFAULT, METRICS, REFERENCE_FREE, check_metrics, score

_path = click.Path(path_type=Path)
_file = click.Path(path_type=Path, dir_okay=False)


@click.command("score")
@click.argument("results", type=_path)
@click.option(
    "--refs",
    "references",
    type=_path,
    multiple=True,
    help="Reference captions. Repeat for several plain-text files. Only clipscore and pac-s need "
    "none.",
)
@click.option("--split", help="Score only this split of the references, such as test.")
@click.option(
    "--metrics",
    default=",".join(DEFAULT),
    show_default=True,
    help=f"Any of {', '.join(METRICS)}. The COCO evaluation prints cider-d as CIDEr.",
)
@click.option(
    "--per-image",
    type=_file,
    help="Write the scores of each picture to this CSV file.",
)
@click.option(
    "--against",
    type=_path,
    help="Compare with other results for the same pictures: adds differences, 95 % intervals and "
    "p-values.",
)
@click.option(
    "--boxes",
    type=_path,
    help="COCO instances_*.json: adds chair and counts annotated objects as present. Without it, "
    "chair uses the references alone.",
)
@click.option(
    "--diversity",
    "diverse",
    is_flag=True,
    help="Also measure diversity: distinct n-grams, vocabulary, bad endings, and self-CIDEr if a "
    ".jsonl file has several captions per picture (the other metrics score the first).",
)
@click.option(
    "--training",
    type=_path,
    help="The dataset (its train split) or .txt that the system was trained on: adds --diversity "
    "and the share of novel captions.",
)
@click.option(
    "--frequencies",
    type=_file,
    help="Use the document frequencies in this file for CIDEr, not those of the references.",
)
@click.option(
    "--save-frequencies",
    type=_file,
    help="Save the document frequencies of the references, for use with --frequencies.",
)
@click.option(
    "--clip",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of a CLIP model in the layout of transformers, for clipscore and pac-s.",
)
@images_option
@json_option
def command(
    results: Path,
    references: tuple[Path, ...],
    split: str | None,
    metrics: str,
    per_image: Path | None,
    against: Path | None,
    boxes: Path | None,
    diverse: bool,
    training: Path | None,
    frequencies: Path | None,
    save_frequencies: Path | None,
    clip: Path | None,
    images: Path | None,
    as_json: bool,
) -> None:
    """Score captions against references with the standard metrics, without Java.

    \b
    RESULTS is one of
      results.json   COCO: [{"image_id": 42, "caption": "a dog runs"}, ...]
      results.jsonl  {"image": "dog.jpg", "captions": ["a dog runs"]} on each line
      results.txt    one caption per line
    For the first two, --refs takes any dataset that `sightline data check` reads: COCO
    captions_*.json, Karpathy dataset_*.json, Sightline .jsonl, Flickr8k token.txt, or a folder
    with one. For results.txt it takes .txt files whose lines correspond; separate several
    references of a line by tabs, or give several files.
    """
    names = [name for part in metrics.split(",") if (name := part.strip().lower())]
    if not names:
        raise DataError(f"no metric given; choose from {', '.join(METRICS)}")
    if boxes is not None and "chair" not in names:
        names.append("chair")
    check_metrics(names)
    diverse = diverse or training is not None
    weights = None if frequencies is None else DocumentFrequencies.load(frequencies)
    without = not references and all(name in REFERENCE_FREE for name in names)
    if not references and not without:
        raise click.UsageError(
            "Missing option '--refs': give reference captions; only clipscore and pac-s need none."
        )
    if clip is None and any(name in REFERENCE_FREE for name in names):
        raise DataError("clipscore and pac-s need --clip: the folder of a CLIP model")
    systems = [
        _without_references(path, images)
        if without
        else read_scorable(path, references, split, boxes=boxes, several=diverse, images=images)
        for path in (results, against)
        if path is not None
    ]
    scores = [
        [
            *score(
                s.candidates,
                s.references,
                names,
                weights,
                annotated=s.categories,
                pictures=s.pictures,
                clip=clip,
            ).values()
        ]
        for s in systems
    ]
    varieties: list[Diversity] = []
    if diverse:
        learnt = None if training is None else read_training(training)
        varieties = [diversity(system.candidates, learnt) for system in systems]
        if all(any(len(captions) > 1 for captions in system.samples) for system in systems):
            for system, system_scores in zip(systems, scores, strict=True):
                system_scores.append(self_cider(system.samples, weights))
    differences = [compare(*pair) for pair in zip(*scores, strict=True)] if against else []

    scored = systems[0]
    if save_frequencies is not None:
        document_frequencies(scored.references).save(save_frequencies)
    if per_image is not None:
        _write_csv(per_image, scored, scores[0])
    if as_json:
        print_json(_content(scored, scores[0], differences, varieties))
        return
    if against is None:
        console.print(score_table(scores[0], varieties[0] if varieties else None))
    else:
        console.print(difference_table([results.name, against.name], differences, varieties))
    with_boxes = f", {sum(map(bool, scored.categories)):,} with boxes" if scored.categories else ""
    pictures = f"{len(scored.images):,} picture{'s' * (len(scored.images) != 1)}"
    console.print(f"{pictures}{with_boxes}; values times 100.", style="dim")


def _without_references(path: Path, images: Path | None) -> Scorable:
    """Captions by picture, from any file that `sightline audit` reads."""
    from sightline.audit.deliveries import read_delivery

    captions = read_delivery(path, images).captions
    missing = [given.name for given in captions if given.picture is None]
    if missing:
        raise DataError(f"{path}: there is no picture {missing[0]}; give its folder with --images")
    return Scorable(
        tuple(given.name for given in captions),
        tuple((given.text,) for given in captions),
        ((),) * len(captions),
        pictures=tuple(given.picture for given in captions if given.picture),
    )


def _write_csv(path: Path, scored: Scorable, scores: Sequence[Score]) -> None:
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["image", "caption", *(each.name for each in scores)])
        columns = zip(*(map(number, each.per_image.tolist()) for each in scores), strict=True)
        rows = zip(scored.images, scored.candidates, columns, strict=True)
        writer.writerows([image, caption, *values] for image, caption, values in rows)


def _content(
    scored: Scorable,
    scores: Sequence[Score],
    differences: Sequence[Difference],
    varieties: Sequence[Diversity],
) -> dict[str, Any]:
    content: dict[str, Any] = {"images": len(scored.images)}
    content["scores"] = {each.name: number(each.corpus) for each in scores}
    if differences:
        content["against"] = {
            difference.name: {
                "value": number(difference.other),
                "difference": number(difference.difference),
                "low": number(difference.low),
                "high": number(difference.high),
                "p": number(difference.p),
            }
            for difference in differences
        }
    for key, variety in zip(("diversity", "diversity_against"), varieties, strict=False):
        content[key] = asdict(variety)
    return content
