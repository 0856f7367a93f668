"""Paper 0, table 4: which of two captioners do people prefer, and do they agree?"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.blind.answers import Answers
from sightline.blind.preference import PASSED, Verdict, attention, by_picture, verdicts
from sightline.blind.study import Study
from sightline.config import Share
from sightline.errors import DataError
from sightline.experiments.claims import Answer, Claim, judge, untested
from sightline.experiments.estimate import Estimate, estimate, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Task
from sightline.metrics.bootstrap import interval
from sightline.metrics.krippendorff import krippendorff_alpha
from sightline.metrics.score import number

# Paper 0, table 4: percentages of wins of the Transformer, ties, and wins of A² with the gate.
PUBLISHED = {
    "naturalness": (25.8, 42.0, 32.2),
    "relevance": (26.5, 45.5, 28.0),
    "richness": (20.2, 41.4, 38.4),
}
_OUTCOMES = ((1, "wins"), (0, "ties"), (-1, "losses"))


@dataclass(frozen=True)
class Options:
    """`passed`: the share of attention checks that a rater must get right to be counted."""

    passed: Share = PASSED


@dataclass(frozen=True)
class OpenStudy:
    """A study and the answers to it so far."""

    name: str
    folder: Path
    budget: str = ""  # whoever made the captions knows it


def open_study(folder: Path) -> OpenStudy:
    """A folder that `sightline compare-blind` made."""
    Study.load(folder)
    return OpenStudy(folder.resolve().name, folder)


def tasks(subjects: Sequence[OpenStudy], options: Options) -> Iterator[Task]:
    """One task for each study. With new answers it is another task: it is read again."""
    for subject in subjects:
        with Answers(subject.folder, read_only=True) as answers:
            ratings = answers.ratings()
        digest = hashlib.sha256(repr([(r.rater, r.at, r.choice) for r in ratings]).encode())

        def measure(subject: OpenStudy = subject) -> Record:
            return read_study(subject, options)

        yield Task(f"{subject.name} {digest.hexdigest()[:16]}", measure)


def read_study(subject: OpenStudy, options: Options) -> Record:
    """What the answers to a study say so far."""
    with Answers(subject.folder, read_only=True) as answers:
        study, ratings = answers.study, answers.ratings()
    checks = attention(study, ratings)
    counted = verdicts(study, ratings, options.passed)
    if not counted:
        raise DataError(f"{subject.folder}: no attentive rater has answered yet")
    return {
        "study": subject.name,
        "systems": list(study.systems),
        "pictures": len(study.pairs),
        "identical": len(study.identical),
        "raters": {
            name: {
                "checks": done.asked,
                "right": done.right,
                "counted": done.passed(options.passed),
                "answers": sum(r.rater == name and not r.is_check for r in ratings),
            }
            for name, done in checks.items()
        },
        "questions": {
            question.name: _of_question(study, counted, question.name)
            for question in study.questions
        },
    }


def _of_question(study: Study, counted: Sequence[Verdict], question: str) -> Record:
    asked = [verdict for verdict in counted if verdict.question == question]
    pictures = [verdict.picture for verdict in asked]
    shares = {
        name: estimate([float(v.outcome == outcome) for v in asked], pictures).to_json()
        for outcome, name in _OUTCOMES
    }
    net = estimate([float(verdict.outcome) for verdict in asked], pictures)
    alpha = krippendorff_alpha(by_picture(study, counted, question))
    bounds = [number(bound) for bound in interval(alpha)] if alpha.per_image.size else [None, None]
    return shares | {
        "net": net.to_json(),
        "alpha": {"value": number(alpha.corpus), "low": bounds[0], "high": bounds[1]},
        "answers": len(asked),
    }


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows = []
    for record in records:
        first, second = record["systems"]
        for question, of in record["questions"].items():
            net = Estimate.from_json(of["net"])
            rows.append(
                [
                    record["study"],
                    question,
                    *(Estimate.from_json(of[name]).show(100) for _, name in _OUTCOMES),
                    net.show(100, sign="+"),
                    _preferred(net, first, second),
                    _alpha(of["alpha"]),
                    str(of["answers"]),
                ]
            )
        rows += [
            ["paper 0, table 4", question, *_published(question), "-", "-"]
            for question in record["questions"]
            if question in PUBLISHED
        ]
    header = ["study", "question", "first wins", "ties", "second wins", "first - second"]
    header += ["preferred", "α", "answers"]
    table = to_markdown(header, rows) + "".join(map(_notes, records))
    return Findings(table, _draw(records), {"studies": list(records), "published": PUBLISHED})


def _published(question: str) -> list[str]:
    """A² is the system under study, so it comes first here."""
    losses, ties, wins = PUBLISHED[question]
    shares = [f"{share:.1f}" for share in (wins, ties, losses)]
    return [*shares, f"{wins - losses:+.1f}", "A² Transformer"]


def _preferred(net: Estimate, first: str, second: str) -> str:
    """Who is preferred, if the interval of the difference leaves no doubt."""
    if net.low > 0:
        return first
    return second if net.high < 0 else "neither is shown to be"


def _alpha(alpha: Record) -> str:
    if alpha["value"] is None:
        return "-"
    if alpha["low"] is None:
        return f"{alpha['value']:.2f}"
    return f"{alpha['value']:.2f} ({alpha['low']:.2f} to {alpha['high']:.2f})"


def _notes(record: Record) -> str:
    raters = record["raters"]
    counted = [name for name, of in raters.items() if of["counted"] and of["answers"]]
    missed = [
        f"{name} ({of['right']} of {of['checks']} checks)"
        for name, of in raters.items()
        if of["answers"] and not of["counted"]
    ]
    first, second = record["systems"]
    lines = [
        f"{record['study']}: first is {first}, second is {second}. {record['pictures']} pairs; "
        f"{record['identical']} more pictures have the same caption from both and count as ties.",
        f"Raters who count: {len(counted)} ({', '.join(counted)}).",
    ]
    if missed:
        lines.append(f"Not counted, for failing attention checks: {', '.join(missed)}.")
    lines.append("Percent, with 95 % intervals over pictures, for these raters.")
    return "\n" + "\n".join(lines) + "\n"


def _draw(records: Sequence[Record]) -> Any:
    """A bar for each question: wins, ties, losses."""
    from matplotlib.figure import Figure

    bars = [(r, question) for r in records for question in r["questions"]]
    figure = Figure(figsize=(7.2, 1.3 + 0.5 * len(bars)), layout="constrained")
    panel = figure.subplots()
    colours, left = ("#b45309", "#d6d1c8", "#1d5fc9"), [0.0] * len(bars)
    names = [r["study"] for r in records]
    for (_, name), colour in zip(_OUTCOMES, colours, strict=True):
        shares = [100 * r["questions"][question][name]["mean"] for r, question in bars]
        panel.barh(range(len(bars)), shares, left=left, color=colour, height=0.62)
        for place, (start, share) in enumerate(zip(left, shares, strict=True)):
            if share >= 4:
                white = name != "ties"
                panel.text(
                    *(start + share / 2, place, f"{share:.0f}"),
                    ha="center",
                    va="center",
                    color="white" if white else "black",
                    fontsize=9,
                )
        left = [start + share for start, share in zip(left, shares, strict=True)]
    labels = [f"{r['study']}: {q}" if len(set(names)) > 1 else q for r, q in bars]
    panel.set_yticks(range(len(bars)), labels)
    panel.invert_yaxis()
    panel.set_xlim(0, 100)
    panel.set_xlabel("percent of answers")
    systems = {tuple(record["systems"]) for record in records}
    (first, second) = next(iter(systems)) if len(systems) == 1 else ("first", "second")
    handles = [panel.patches[n * len(bars)] for n in range(3)]
    panel.legend(
        handles,
        [f"{first} wins", "tie", f"{second} wins"],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        fontsize=8,
        frameon=False,
    )
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    return figure


def _people_prefer_alignment(data: dict[str, Any]) -> Answer:
    """Only a study of those two captioners can say, and only people make one."""
    for record in data["studies"]:
        first, second = record["systems"]
        if "aligned" in first and "transformer" in second and "aligned" not in second:
            nets = {name: Estimate.from_json(of["net"]) for name, of in record["questions"].items()}
            said = "; ".join(f"{name} {net.show(100, sign='+')}" for name, net in nets.items())
            if not all(net.bounded for net in nets.values()):
                return untested(f"Too few pictures were rated. Wins minus losses: {said} points.")
            return judge([*nets.values()], f"Wins minus losses: {said} points.")
    return untested("No people have compared these two captioners here.")


EXPERIMENT = Experiment(
    "paper0-table4",
    "Which of two captioners do people prefer, in a blind comparison, and do they agree?",
    Options,
    tasks,
    conclude,
    claims=(
        Claim(
            "table 4",
            "People prefer the captions of the A² Transformer in naturalness, relevance and "
            "richness.",
            _people_prefer_alignment,
        ),
    ),
    open=open_study,
)
