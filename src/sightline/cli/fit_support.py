"""`sightline fit-support`."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from sightline.cli.options import (
    console,
    data_option,
    dataset_for,
    device_option,
    find_pictures,
    images_option,
    json_option,
    print_json,
)
from sightline.data.dataset import CaptionDataset, CaptionedImage
from sightline.errors import ConfigError
from sightline.printing import printable

_FIGURES = (".png", ".svg", ".pdf")


@click.command("fit-support")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "--split",
    default="dev",
    show_default=True,
    help="Split to fit on. Do not use the training split.",
)
@click.option(
    "--others",
    metavar="PICTURES",
    multiple=True,
    help="Files, folders or patterns: pictures to substitute for the captioned one, to see how "
    "much a word depends on it. Their regions are stored in the checkpoint. Default: eight "
    "pictures of the split, left out of the fit.",
)
@click.option(
    "--learn-from",
    metavar="PICTURES",
    type=click.IntRange(min=0),
    default=20_000,
    show_default=True,
    help="Pictures of the training split, at most, that a detector of words learns from. Their "
    "regions are kept in the cache. 0 for no detector; one is left out below 1,000 pictures.",
)
@click.option(
    "--report-on", metavar="SPLIT", help="Also report on this split; with --no-fit, only on it."
)
@click.option(
    "--no-fit",
    is_flag=True,
    help="Do not fit. Report on the stored classifier, with --report-on SPLIT.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Store the result in a copy of the captioner in this new folder, and leave RUN as it is.",
)
@click.option(
    "--words",
    metavar="WORD,…",
    help="Also report on these words alone, such as the object words of paper 4, table 3.",
)
@click.option(
    "--figure",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also draw the calibration of each table into this file (.png, .svg or .pdf).",
)
@data_option
@images_option
@device_option
@json_option
def command(
    run: Path | None,
    split: str,
    others: tuple[str, ...],
    learn_from: int,
    report_on: str | None,
    no_fit: bool,
    output: Path | None,
    words: str | None,
    figure: Path | None,
    data: Path | None,
    images: Path | None,
    device: str,
    as_json: bool,
) -> None:
    """Fit the classifier of supported words for `sightline caption --check`.

    Captions held-out pictures with the captioner of RUN, and labels each content word right or
    wrong by the reference captions. Fits a classifier to the scores of these words and stores it
    in the checkpoint, with a detector of words that has learnt from training pictures. Without
    RUN, it fits one for the bundled captioner, and needs -o. The tables show how well each score,
    and their combination, separate right words from wrong ones (AUC with 95 % intervals,
    cross-validated on the split of the fit), and of words with about the same support how many
    are right.
    """
    from sightline.adapters.source import find_source
    from sightline.captioner import Captioner
    from sightline.checkpoint import find_checkpoint
    from sightline.evaluation.support import fit_support

    if no_fit and report_on is None:
        raise ConfigError("--no-fit needs --report-on: give a split to report on")
    if report_on == split and not no_fit:
        raise ConfigError(f"--report-on: '{split}' is the split of the fit; give another split")
    if run is None and output is None and not no_fit:
        raise ConfigError("the bundled captioner is not changed: give a folder for a copy with -o")
    source = find_source(run) if run is not None else None
    if source is not None and source.folder is None and output is None:
        raise ConfigError(f"{source}: is not kept here: give a folder for its check with -o")
    if source is not None and source.folder is None and not source.is_remote:
        raise ConfigError(f"{source}: is no folder on this machine, so it cannot be copied")
    if output is not None and (no_fit or output.exists()):
        wrong = "nothing is stored with --no-fit" if no_fit else f"{output} exists already"
        raise ConfigError(f"--output: {wrong}")
    if figure is not None and figure.suffix not in _FIGURES:
        raise ConfigError(f"--figure: {figure} must end in {', '.join(_FIGURES)}")
    dataset, cache = dataset_for(run, data, images)
    model = find_checkpoint(run)
    captioner = Captioner.load(model, device=device)
    with _new_folder(output) as copy:
        if copy is not None:
            _copy(model, copy)
            captioner.checkpoint = copy
        reports = fit_support(
            captioner,
            () if no_fit else dataset.split(split),
            () if report_on is None else dataset.split(report_on),
            learnt_from=() if no_fit else _training_pictures(dataset, learn_from),
            others=list(find_pictures(others)),
            split=split,
            report_on=report_on or "",
            cache=cache,
            show_progress=True,
        )
    if words is not None:
        chosen = words.split(",")
        reports = [each for report in reports for each in (report, report.only(chosen))]
    content = [report.to_json() for report in reports]
    if figure is not None:
        from sightline.report.calibration_figure import draw_calibrations
        from sightline.report.saving import save_figure

        curves = [(report["pictures"], report["calibration"]) for report in content]
        save_figure(draw_calibrations(curves), figure)
    if as_json:
        print_json(content)
        return
    for report in content:
        _print(report)
    if not no_fit:
        console.print(f"Stored in {printable(output or captioner.checkpoint)}.", markup=False)


@contextmanager
def _new_folder(output: Path | None) -> Iterator[Path | None]:
    """Where to make a folder that gets its name when the block ends without an error."""
    if output is None:
        yield None
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as temporary:
        unfinished = Path(temporary) / output.name
        yield unfinished
        unfinished.rename(output)


def _copy(model: Path, output: Path) -> None:
    """A copy of a captioner; of one behind an API, a folder that names its server."""
    from sightline.adapters.source import find_source, keep_remote

    source = find_source(model)
    if source is not None and source.is_remote:
        keep_remote(source, output)
    else:
        # The copy may be made inside the captioner's own folder.
        leave_out = shutil.ignore_patterns(output.parent.name)
        folder = model if source is None else source.folder or model
        shutil.copytree(folder, output, ignore=leave_out)


def _training_pictures(dataset: CaptionDataset, most: int) -> list[CaptionedImage]:
    """At most so many pictures of the training split, taken evenly."""
    training = [image for image in dataset.images if image.split == "train"]
    return training[:: max(1, -(-len(training) // most))] if most else []


def _print(report: dict[str, Any]) -> None:
    from sightline.support.foreign import MEANING as FOREIGN_MEANING
    from sightline.support.word_scores import MEANING

    meaning = FOREIGN_MEANING | MEANING
    heading = f"{report['pictures']}: {report['words']:,} words, {report['right']:,} right"
    table = Table("score", "AUC", "95 %", "what it is", title=heading, box=None, pad_edge=False)
    for name, row in report["scores"].items():
        bounds = "–" if row["auc"] is None else f"{row['low']:.3f}–{row['high']:.3f}"
        value = "–" if row["auc"] is None else f"{row['auc']:.3f}"
        table.add_row(name, value, bounds, meaning.get(name, "all of them combined"))
    console.print(table)
    for verdict, counts in report["verdicts"].items():
        share = f", {counts['right'] / counts['words']:.0%} right" if counts["words"] else ""
        console.print(f"{verdict}: {counts['words']:,} words{share}")
    if report["calibration"]:
        console.print(_calibration(report["calibration"]))
    if report["unfamiliar"] is not None:
        console.print(f"pictures called unfamiliar: {report['unfamiliar']:.1%}")
    console.print()


def _calibration(bins: Sequence[dict[str, Any]]) -> Table:
    """How many words of each tenth of support are right."""
    table = Table("support", "words", "mean support", "right", "95 %", box=None, pad_edge=False)
    for each in bins:
        bounds = f"{each['interval']['low']:.0%}–{each['interval']['high']:.0%}"
        shares = (f"{each['support']:.0%}", f"{each['right']:.0%}", bounds)
        table.add_row(f"{each['low']:.1f}–{each['high']:.1f}", f"{each['words']:,}", *shares)
    return table
