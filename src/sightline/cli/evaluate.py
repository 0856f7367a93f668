"""`sightline evaluate`."""

from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from sightline.cli.options import (
    console,
    data_option,
    dataset_for,
    device_option,
    folder_option,
    images_option,
    json_option,
    no_repeat_option,
    print_json,
)
from sightline.cli.score_table import percent
from sightline.printing import printable

_METRICS = ("bleu", "rouge-l", "cider-d", "meteor")


@click.command("evaluate")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--split", default="test", show_default=True, help="Split to caption and score.")
@data_option
@images_option
@device_option
@click.option(
    "--phase",
    "--stage",
    "phase",
    type=click.IntRange(1),
    help="Evaluate the checkpoint at the end of this training phase. Default: the best checkpoint.",
)
@click.option("--beam", type=click.IntRange(1), help="Beam width. Default: stored with the model.")
@click.option(
    "--length-power",
    type=float,
    help="Length penalty: scores are divided by length to this power. Default: stored with the "
    "model.",
)
@no_repeat_option
@click.option(
    "--metrics",
    help="Metrics, named as in `sightline score`. Default: those of bleu, rouge-l, cider-d and "
    "meteor that are installed.",
)
@folder_option(
    "Folder for the captions (COCO results format), the scores and the per-image table. "
    "Default: evaluation-SPLIT (with --phase N: evaluation-SPLIT-stage-N) in the run's folder, or "
    "in the current folder for no run or several."
)
@json_option
def command(
    runs: tuple[Path, ...],
    split: str,
    data: Path | None,
    images: Path | None,
    device: str,
    phase: int | None,
    beam: int | None,
    length_power: float | None,
    no_repeat: int | None,
    metrics: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Caption a split with the best checkpoint of RUNS, and score the captions.

    With several runs, evaluates their ensemble: next-word probabilities are averaged. Without
    RUNS, evaluates the bundled captioner on --data. Regions are read from the cache; pictures
    that are not in it are encoded first.
    """
    from sightline.adapters.source import find_source
    from sightline.captioner import Captioner
    from sightline.checkpoint import find_checkpoint
    from sightline.evaluation.evaluate import evaluate
    from sightline.metrics.scoring import check_metrics

    names = _default_metrics() if metrics is None else check_metrics(metrics.split(","))
    dataset, cache = dataset_for(runs[0] if runs else None, data, images)
    chosen = dataset.split(split)
    checkpoints = [find_checkpoint(run, phase) for run in runs or [None]]
    search = {"beam": beam, "length_power": length_power, "no_repeat_ngram": no_repeat}
    is_ours = len(runs) == 1 and find_source(runs[0]) is None
    folder = output or (runs[0] if is_ours else Path()) / (
        f"evaluation-{split}" + (f"-stage-{phase}" if phase else "")
    )
    evaluation = evaluate(
        Captioner.load(*checkpoints, device=device),
        chosen,
        names,
        split=split,
        cache=cache,
        folder=folder,
        show_progress=True,
        **{name: value for name, value in search.items() if value is not None},
    )
    if as_json:
        print_json(evaluation.summary())
        return
    if not evaluation.scores:
        console.print(
            f"The pictures have no captions to score against. Captions for a test server are in "
            f"{escape(printable(folder / 'captions.json'))}."
        )
        return
    table = Table("metric", f"{split}, {len(chosen):,} pictures", box=None, pad_edge=False)
    table.columns[1].justify = "right"
    for score in evaluation.scores:
        table.add_row(escape(score.name), percent(score.corpus))
    table.add_row("bad endings", percent(evaluation.summary()["bad_endings"]))
    console.print(table)
    console.print(f"\nCaptions, scores and a per-image table are in {escape(printable(folder))}.")


def _default_metrics() -> list[str]:
    from sightline.metrics.scoring import installed_metrics

    installed = installed_metrics(_METRICS)
    for name in _METRICS:
        if name not in installed:
            click.echo(
                f"sightline: {name} is left out, because it is not installed: "
                f"pip install 'sightline[{name}]'",
                err=True,
            )
    return installed
