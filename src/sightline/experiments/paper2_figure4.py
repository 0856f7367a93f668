"""Paper 2, figure 4: goals and attention over time in generated captions, cut into segments.

A segment is a run of words in which a coordinate of the goal only rises or only falls. A series
without any pattern turns at two of three inner points; fewer turns are longer segments.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.captions import Caption
from sightline.data.dataset import CaptionedImage
from sightline.errors import ConfigError
from sightline.experiments.captioned import by_run, every_picture, on_enough
from sightline.experiments.claims import Answer, Claim, decide, decide_all
from sightline.experiments.estimate import Estimate, estimate, to_markdown
from sightline.experiments.experiment import Experiment, Findings, Record, Subject, Task
from sightline.experiments.gallery import (
    attention_map,
    keep_picture,
    kept_picture,
    no_pictures,
    show_heatmap,
)
from sightline.experiments.options import GalleryOptions

RANDOM_TURNS = 2 / 3  # of the inner points of a series without ties or pattern
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Options(GalleryOptions):
    """How many captions are drawn, and how often changes are permuted."""

    shown: int = 2
    permutations: int = 1000


def tasks(
    subjects: Sequence[Subject], options: Options, ground_truth: bool = False
) -> Iterator[Task]:
    def measure(subject: Subject, image: CaptionedImage, number: int) -> Record:
        captioner = subject.captioner
        picture = captioner.encode(captioner.open(image.picture))
        caption = (
            captioner.read(picture, image.captions[0])
            if ground_truth
            else captioner.caption(picture)
        )
        goals = goals_over_time(caption)
        attention = np.array([word.attention for word in caption.words], np.float64)
        record: Record = {
            "goal_change": np.linalg.norm(np.diff(goals, axis=0), axis=1).tolist(),
            "attention_change": np.abs(np.diff(attention, axis=0)).sum(1).tolist(),
            "turns": turns(goals).tolist(),
            "collapse": collapse(goals),
        }
        if number < options.shown:
            record |= {
                "words": [word.text for word in caption.words],
                "goals": goals.round(4).tolist(),
                "maps": [attention_map(caption, place) for place in range(len(caption.words))],
                "image": keep_picture(picture.image),
            }
        return record

    return every_picture(subjects, measure)


def goals_over_time(caption: Caption) -> Floats:
    """The goals `(words, coordinates)` that the MANAGER set."""
    names = sorted(
        (name for name in caption.words[0].signals if name.startswith("goal_")),
        key=lambda name: int(name.removeprefix("goal_")),
    )
    if not names:
        raise ConfigError("this captioner sets no goals; give a run of the model hierarchical")
    return np.array([[word.signals[name] for name in names] for word in caption.words])


def turns(goals: Floats) -> NDArray[np.bool_]:
    """Whether each coordinate turns at each inner word `(words - 2, coordinates)`.

    >>> turns(np.array([[0.0], [1.0], [0.5], [0.2]])).ravel().tolist()
    [True, False]
    """
    steps = np.diff(goals, axis=0)
    return np.asarray(steps[1:] * steps[:-1] < 0)


def collapse(goals: Floats) -> float | None:
    """The mean cosine of the goals of two words: 1 where all follow one goal (section 5.4)."""
    count = len(goals)
    if count < 2:
        return None
    unit = goals / np.maximum(np.linalg.norm(goals, axis=1, keepdims=True), 1e-12)
    return float((np.square(unit.sum(0)).sum() - count) / (count * (count - 1)))


def correlation(records: Sequence[Record], permutations: int) -> tuple[float, float]:
    """Of goal change and attention change over words, each less its caption's mean; and the bound
    that 95 of 100 permutations of the words within captions stay below.
    """
    pairs = [
        (np.array(r["goal_change"]), np.array(r["attention_change"]))
        for r in records
        if len(r["goal_change"]) > 1
    ]
    centred = [(goal - goal.mean(), attention - attention.mean()) for goal, attention in pairs]
    if not centred:
        return np.nan, np.nan
    goal = np.concatenate([one for one, _ in centred])
    size = max(np.sqrt(np.square(goal).sum()), 1e-12)
    size *= max(np.sqrt(sum(np.square(other).sum() for _, other in centred)), 1e-12)
    random = np.random.default_rng(0)

    def permuted() -> float:
        others = np.concatenate([random.permutation(other) for _, other in centred])
        return float(goal @ others / size)

    observed = float(goal @ np.concatenate([other for _, other in centred]) / size)
    return observed, float(np.quantile([permuted() for _ in range(permutations)], 0.95))


def conclude(records: Sequence[Record], options: Options) -> Findings:
    rows, numbers = [], {}
    for run, of_run in by_run(records).items():
        values = [(r["picture"], float(turn)) for r in of_run for at in r["turns"] for turn in at]
        turning = estimate([turn for _, turn in values], [picture for picture, _ in values])
        known = [(r["picture"], r["collapse"]) for r in of_run if r["collapse"] is not None]
        alike = estimate([value for _, value in known], [picture for picture, _ in known])
        observed, bound = correlation(of_run, options.permutations)
        rows.append(
            [
                run,
                str(len(of_run)),
                turning.show(100),
                alike.show(digits=2),
                f"{observed:.2f}",
                f"{bound:.2f}",
            ]
        )
        numbers[run] = {
            "turns": turning.to_json(),
            "collapse": alike.to_json(),
            "correlation": None if np.isnan(observed) else observed,
            "bound": None if np.isnan(bound) else bound,
        }
    header = ["run", "captions", "turning points (%)", "goal collapse"]
    header += ["correlation of changes", "bound of permutations"]
    shown = [record for record in records if "goals" in record]
    return Findings(to_markdown(header, rows), _draw(shown), {"runs": numbers})


def _draw(records: Sequence[Record]) -> Any:
    """Goals over time, with a line where most coordinates turn; below, attention by word."""
    from matplotlib.figure import Figure

    if not records:
        return no_pictures("no caption was to be drawn")
    columns = max(len(record["words"]) for record in records)
    figure = Figure(figsize=(1.25 * columns + 1, 3.6 * len(records)), layout="constrained")
    parts: Any = figure.subfigures(len(records), 1, squeeze=False)
    for part, record in zip(parts.ravel(), records, strict=True):
        goals = np.array(record["goals"])
        above, below = part.subfigures(2, 1, height_ratios=[1.4, 1])
        panel = above.subplots()
        panel.plot(goals)
        for place, at in enumerate(turns(goals), 1):
            if at.mean() > 0.5:
                panel.axvline(place, color="grey", linestyle=":", linewidth=1)
        panel.set_xticks(range(len(goals)), record["words"], fontsize=7, rotation=30)
        panel.set_title(f"{record['run']}: coordinates of the goal", fontsize=8)
        panels = below.subplots(1, columns + 1, squeeze=False)[0]
        for small in panels:
            small.axis("off")
        panels[0].imshow(kept_picture(record["image"]))
        for small, word, heatmap in zip(panels[1:], record["words"], record["maps"], strict=False):
            show_heatmap(small, record["image"], heatmap)
            small.set_title(word, fontsize=7)
    return figure


def segments_are_monotone(data: dict[str, Any]) -> Answer:
    """Coordinates turn less often than a series without pattern."""
    shares = {run: Estimate.from_json(of["turns"]) for run, of in data["runs"].items()}
    sentences = [
        f"{run}: {share.show(100)} % of inner points turn" for run, share in shares.items()
    ]
    holds = all(share.high < RANDOM_TURNS for share in shares.values())
    return decide(holds, "; ".join(sentences) + "; a random series turns at 66.7 %.")


def changes_go_together(data: dict[str, Any]) -> Answer:
    parts = [
        (
            of["correlation"] > of["bound"],
            f"{run}: {of['correlation']:.2f}, and permuted words stay below {of['bound']:.2f}",
        )
        for run, of in data["runs"].items()
        if of["correlation"] is not None
    ]
    return decide_all(parts, "The captions have too few words.")


def goals_collapse(data: dict[str, Any]) -> Answer:
    values = {run: Estimate.from_json(of["collapse"]) for run, of in data["runs"].items()}
    sentences = [f"{run}: mean cosine {value.show(digits=2)}" for run, value in values.items()]
    return decide(any(value.low > 0.9 for value in values.values()), "; ".join(sentences) + ".")


CLAIMS = (
    Claim(
        "section 5.2",
        "Monotonic segments of the goal's coordinates show the semantic segments of a caption.",
        on_enough(segments_are_monotone),
    ),
    Claim("section 5.3", "Goals and attention change together.", on_enough(changes_go_together)),
    Claim(
        "section 5.4", "In some cases goals collapse: all are similar.", on_enough(goals_collapse)
    ),
)
EXPERIMENT = Experiment(
    "paper2-figure4",
    "Do goals and attention change together in captions that are generated?",
    Options,
    tasks,
    conclude,
    CLAIMS,
)
GROUND_TRUTH = Experiment(
    "paper2-figure3",
    "Do goals and attention change together in captions that people wrote?",
    Options,
    partial(tasks, ground_truth=True),
    conclude,
    CLAIMS[:2],
)
