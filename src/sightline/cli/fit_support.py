"""`sightline fit-support`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from sightline.cli.options import (
    console,
    data_option,
    dataset_for,
    find_pictures,
    images_option,
    json_option,
    print_json,
)
from sightline.cli.score_table import number
from sightline.errors import ConfigError

if TYPE_CHECKING:
    from sightline.explain.logistic import Floats
    from sightline.explain.support import Judge
    from sightline.explain.support_fit import Sample


@click.command("fit-support")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--split",
    default="dev",
    show_default=True,
    help="Pictures to fit on; not those that the captioner was trained on.",
)
@click.option(
    "--others",
    metavar="PICTURES",
    multiple=True,
    help="Files, folders or patterns: pictures to put in place of one, to see what words owe it. "
    "Their regions go into the checkpoint. Default: eight of the split, left out of the fit.",
)
@click.option("--report-on", metavar="SPLIT", help="Report on these pictures, too, or instead.")
@click.option(
    "--no-fit", is_flag=True, help="Fit nothing: report what is stored, on --report-on SPLIT."
)
@click.option(
    "--words",
    metavar="WORD,…",
    help="Report on these words apart, too: such as the objects of paper 4's table 3.",
)
@data_option
@images_option
@json_option
def command(
    run: Path,
    split: str,
    others: tuple[str, ...],
    report_on: str | None,
    no_fit: bool,
    words: str | None,
    data: Path | None,
    images: Path | None,
    as_json: bool,
) -> None:
    """Teach the captioner of RUN which of its words to doubt, for `sightline caption --check`.

    It captions held-out pictures and labels each content word right or wrong by their references.
    How the single scores of a word are weighed is fitted to that and stored in the checkpoint. The
    tables say how well each score, and all together, tell right words from wrong ones (AUC, with
    95 % intervals); on the pictures of the fit by cross-validation.
    """
    import numpy as np

    from sightline.captioner import Captioner
    from sightline.data.encode import encode_all
    from sightline.explain.support import save_judge
    from sightline.explain.support_fit import (
        choose_others,
        collect,
        combined_scores,
        fit_judge,
        held_out_scores,
        make_stand_ins,
    )

    if no_fit and report_on is None:
        raise ConfigError("--no-fit leaves nothing to do: name a split to --report-on")
    if report_on == split and not no_fit:
        raise ConfigError(f"'{split}' is fitted on: name another split to --report-on")
    dataset, root = dataset_for(run, data, images)
    held_out = () if no_fit else dataset.split(split)
    reported = () if report_on is None else dataset.split(report_on)
    captioner = Captioner.load(run)
    assert captioner.checkpoint is not None
    stored = captioner.judge if no_fit else None
    given = list(find_pictures(others))
    pictures = [*(image.picture for image in (*held_out, *reported)), *given]
    cache = encode_all(pictures, captioner.encoder, root, show_progress=True)
    found = []
    if stored is not None:
        judge = stored
    else:
        taken, rest = ([], held_out) if given else choose_others(held_out)
        stand_ins = make_stand_ins(given or [image.picture for image in taken], cache)
        sample = collect(captioner, rest, cache, stand_ins, show_progress=True)
        judge = fit_judge(sample, stand_ins)
        save_judge(captioner.checkpoint, judge)
        found.append((f"{split}, fitted on", sample, held_out_scores(sample)))
    if reported:
        sample = collect(captioner, reported, cache, judge.stand_ins, show_progress=True)
        found.append((str(report_on), sample, combined_scores(sample, judge)))
    reports = []
    for what, sample, scores in found:
        reports.append(_report(what, sample, scores, judge))
        if words is not None:
            chosen = np.isin(sample.words, words.split(","))
            what = f"{what}, these words alone"
            reports.append(_report(what, sample.only(chosen), scores[chosen], judge))
    if as_json:
        print_json(reports)
        return
    for report in reports:
        _print(report)
    if not no_fit:
        console.print(f"Stored in {captioner.checkpoint}.", markup=False)


def _report(what: str, sample: "Sample", combined: "Floats", judge: "Judge") -> dict[str, Any]:
    """What is printed of a split, as JSON has it."""
    from sightline.explain.support_fit import auc_table, verdict_counts
    from sightline.metrics.bootstrap import interval

    scores = {}
    for score in auc_table(sample, combined) if sample.words else ():
        low, high = interval(score)
        scores[score.name] = {"auc": number(score.corpus), "low": number(low), "high": number(high)}
    return {
        "pictures": what,
        "words": len(sample.words),
        "right": int(sample.right.sum()),
        "scores": scores,
        "verdicts": {
            verdict: {"words": words, "right": right}
            for verdict, (words, right) in verdict_counts(judge, combined, sample.right).items()
        },
    }


def _print(report: dict[str, Any]) -> None:
    from sightline.explain.word_scores import MEANING

    heading = f"{report['pictures']}: {report['words']:,} words, {report['right']:,} right"
    table = Table("score", "AUC", "95 %", "what it is", title=heading, box=None, pad_edge=False)
    for name, found in report["scores"].items():
        bounds = "–" if found["auc"] is None else f"{found['low']:.3f}–{found['high']:.3f}"
        value = "–" if found["auc"] is None else f"{found['auc']:.3f}"
        table.add_row(name, value, bounds, MEANING.get(name, "all of them, weighed"))
    console.print(table)
    for verdict, found in report["verdicts"].items():
        share = f", {found['right'] / found['words']:.0%} right" if found["words"] else ""
        console.print(f"{verdict}: {found['words']:,} words{share}")
    console.print()
