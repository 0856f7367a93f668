"""One page of all claims: what each paper says, what our numbers say, and the verdict.

It is made from the `data.json` of finished experiments alone, so that no number is typed by hand.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from sightline.errors import DataError
from sightline.experiments.claims import Answer, Claim, untested
from sightline.experiments.estimate import to_markdown
from sightline.experiments.experiment import Experiment
from sightline.experiments.registry import EXPERIMENTS, find_experiment
from sightline.experiments.runner import page_of, table_of
from sightline.files import DATA_BYTES, atomic_write
from sightline.parsing import read_json, read_text
from sightline.printing import printable

PAPERS = (
    "Attention-aligned Transformer for image captioning",
    "Show, attend and tell",
    "Semantic alignment for hierarchical image captioning (HACap)",
    "Image-to-text transduction with spatial self-attention",
    "Understanding image captioning models beyond visualizing attention",
)
_INTRODUCTION = """# Which claims of the papers hold here

`{command}` makes this page from the results of experiments,
which `sightline experiment` makes.

- *Reproduced*: our number agrees with the claim, and so does its whole 95 % interval.
- *Not reproduced*: our whole interval is against it, at the budget that the table behind the link
  states. Most runs here are of small captioners that were trained for a short time.
- *Not tested*: no run here can say, or seeds or pictures differ too much to tell: the interval
  leaves both possible.

A claim that is put to several results may fare differently with each.

A verdict is about the data that it names. Scenes are synthetic pictures of a few shapes, with some
thirty words: a claim that fails there may hold for photographs, and the other way round.

Of {total} claims, {reproduced} are reproduced, {against} are not, {mixed} are reproduced by some
results but not by others, and {untested} are not tested.
"""


@dataclass(frozen=True)
class Row:
    """A claim, and what one finished experiment says to it."""

    experiment: Experiment
    claim: Claim
    answer: Answer
    folder: str = ""  # of the experiment's results; empty where there are none
    data: str = ""  # what it was measured on


def collect(folder: Path) -> list[Row]:
    """Every claim of every experiment, put to the results in the folders below `folder`.

    >>> rows = collect(Path("nothing"))
    >>> {row.answer.verdict for row in rows}
    {'not tested'}
    """
    results: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for path, data in _stored(folder):
        results.setdefault(data["experiment"], []).append((path.name, data))
    rows: list[Row] = []
    for name in EXPERIMENTS:
        experiment = find_experiment(name)
        for claim in experiment.claims:
            rows += _answers(experiment, claim, results.get(name, []))
    return rows


def renew_tables(folder: Path) -> None:
    """Make what is below each stored table again, from the `data.json` beside it."""
    pages: dict[Path, str] = {}
    for path, data in _stored(folder):
        table = path / "table.md"
        measured = table_of(read_text(table, DATA_BYTES, DataError))
        with _asked(path.name):
            pages[table] = page_of(measured, find_experiment(data["experiment"]), data)
    for table, page in pages.items():
        with atomic_write(table) as file:
            file.write(page)


def _stored(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The folder and the data of every result below a folder."""
    for path in sorted(folder.glob("*/data.json")):
        data = read_json(path)
        name = data.get("experiment") if isinstance(data, dict) else None
        if not isinstance(name, str) or name not in EXPERIMENTS:
            raise DataError(f"{path}: is not the data of an experiment that is known here")
        yield path.parent, data


def _answers(
    experiment: Experiment, claim: Claim, results: list[tuple[str, dict[str, Any]]]
) -> Iterator[Row]:
    for name, data in results:
        with _asked(name):
            answer = claim.test(data)
        yield Row(experiment, claim, answer, name, str(data.get("data", "")))
    if not results:
        yield Row(experiment, claim, untested("No run of this experiment is stored."))


@contextmanager
def _asked(name: str) -> Iterator[None]:
    """Claims ask for fields of their own experiment's data, each of which may be wrong."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise DataError(f"{name}/data.json: lacks what a claim asks for: {error}") from None


def to_page(rows: list[Row], command: str, link: str = "experiments") -> str:
    """The page; results are linked to below the folder `link`."""
    verdicts: dict[tuple[int | None, str, str], set[str]] = {}
    for row in rows:
        claim = paper_of(row.experiment.name), row.claim.place, row.claim.statement
        verdicts.setdefault(claim, set()).add(row.answer.verdict)
    fates = [of_claim - {"not tested"} for of_claim in verdicts.values()]
    page = _INTRODUCTION.format(
        command=command,
        total=len(fates),
        reproduced=fates.count({"reproduced"}),
        against=fates.count({"not reproduced"}),
        mixed=fates.count({"reproduced", "not reproduced"}),
        untested=fates.count(set()),
    )
    # The papers' claims first, then ours.
    ordered = sorted(rows, key=lambda r: (paper_of(r.experiment.name) is None, r.experiment.name))
    for paper, of_paper in groupby(ordered, lambda row: paper_of(row.experiment.name)):
        title = "Ours" if paper is None else f"Paper {paper}: {PAPERS[paper]}"
        header = ["where", "the claim", "verdict", "data", "here", "experiment"]
        page += f"\n## {title}\n\n"
        page += to_markdown(header, [_cells(row, link) for row in of_paper])
    return page


def _cells(row: Row, link: str) -> list[str]:
    name = row.experiment.name
    where = f"[{row.folder}]({link}/{row.folder}/table.md)" if row.folder else f"`{name}`"
    texts = (row.claim.statement, row.answer.verdict, row.data or "-", row.answer.sentence)
    statement, verdict, data, sentence = (printable(text).replace("|", "\\|") for text in texts)
    return [row.claim.place, statement, f"*{verdict}*", data, sentence, where]


def paper_of(name: str) -> int | None:
    """The paper that an experiment is of.

    >>> paper_of("paper0-figure2"), paper_of("explanations")
    (0, None)
    """
    return int(name[5]) if name.startswith("paper") else None
