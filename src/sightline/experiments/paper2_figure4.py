"""Paper 2, figure 4: goals and attention over time in generated captions, cut into segments.

A segment is a run of words in which a coordinate of the goal only rises or only falls. Fewer turns
are longer segments; how many turns there are without any pattern, permuted words say. The claims
are about goals as the paper trains them: of runs whose last phase was adversarial.
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
from sightline.experiments.claims import Answer, Claim, judge, not_kept, untested
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

COLLAPSED = 0.9  # mean cosine above which the goals of a caption are similar
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
            "goals": goals.tolist(),
        }
        if number < options.shown:
            record |= {
                "words": [word.text for word in caption.words],
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
    steps = np.diff(goals, axis=-2)
    return np.asarray(steps[..., 1:, :] * steps[..., :-1, :] < 0)


def collapse(goals: Floats) -> float | None:
    """The mean cosine of the goals of two words: 1 where all follow one goal (section 5.4)."""
    count = len(goals)
    if count < 2:
        return None
    unit = goals / np.maximum(np.linalg.norm(goals, axis=1, keepdims=True), 1e-12)
    return float((np.square(unit.sum(0)).sum() - count) / (count * (count - 1)))


def permuted_turns(captions: Sequence[Floats], permutations: int) -> tuple[float, float]:
    """The share of inner points that turn where words are permuted within captions, 5 of 100 times
    below the first bound and 5 of 100 times above the second. Goals that repeat still do.

    >>> level, zigzag = np.zeros((9, 1)), np.arange(9.0)[:, None] % 2
    >>> permuted_turns([level], 50)
    (0.0, 0.0)
    >>> bool(permuted_turns([zigzag], 50)[1] < turns(zigzag).mean())
    True
    """
    random = np.random.default_rng(0)
    turned, points = np.zeros(permutations), 0
    for goals in captions:
        if len(goals) > 2:
            order = random.permuted(np.tile(np.arange(len(goals)), (permutations, 1)), axis=1)
            each = turns(goals[order])
            turned += each.sum((1, 2))
            points += each[0].size
    if not points:
        return np.nan, np.nan
    low, high = np.quantile(turned / points, [0.05, 0.95])
    return float(low), float(high)


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
        goals = [np.array(record["goals"]) for record in of_run]
        pictures = [record["picture"] for record in of_run]
        values = [
            (picture, float(turn))
            for picture, of_picture in zip(pictures, goals, strict=True)
            for turn in turns(of_picture).ravel()
        ]
        turning = estimate([turn for _, turn in values], [picture for picture, _ in values])
        permuted = permuted_turns(goals, options.permutations)
        cosines = [(p, collapse(g)) for p, g in zip(pictures, goals, strict=True)]
        known = [(picture, cosine) for picture, cosine in cosines if cosine is not None]
        of_known = [picture for picture, _ in known]
        alike = estimate([cosine for _, cosine in known], of_known)
        collapsed = estimate([float(cosine > COLLAPSED) for _, cosine in known], of_known)
        observed, bound = correlation(of_run, options.permutations)
        rows.append(
            [
                run,
                str(len(of_run)),
                turning.show(100),
                "-" if np.isnan(permuted[0]) else "{:.1f} to {:.1f}".format(*_percent(permuted)),
                alike.show(digits=2),
                collapsed.show(100),
                f"{observed:.2f}",
                f"{bound:.2f}",
            ]
        )
        numbers[run] = {
            "turns": turning.to_json(),
            "permuted_turns": None if np.isnan(permuted[0]) else list(permuted),
            "collapse": alike.to_json(),
            "collapsed": collapsed.to_json(),
            "correlation": None if np.isnan(observed) else observed,
            "bound": None if np.isnan(bound) else bound,
        }
    header = ["run", "captions", "turning points (%)", "of permuted words"]
    header += ["goal collapse", f"captions above {COLLAPSED:g} (%)"]
    header += ["correlation of changes", "bound of permutations"]
    shown = [record for record in records if "maps" in record]
    return Findings(to_markdown(header, rows), _draw(shown), {"runs": numbers})


def _percent(bounds: tuple[float, float]) -> list[float]:
    return [100 * bound for bound in bounds]


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


ADVERSARIAL = " of adversarial"
"""How the budget of a run ends that the paper's last phase trained."""
NOT_TREATED = "No run here ends with the paper's adversarial phase."


def treated(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What there is of runs whose goals were trained as the paper trains them.

    >>> budgets = {"a": "6 epochs of x, then 2 epochs of adversarial", "b": "6 epochs of x"}
    >>> treated({"runs": {"a": {"turns": 1}, "b": {"turns": 2}}, "budgets": budgets})
    {'a': {'turns': 1}}
    """
    budgets = data["budgets"]
    return {run: of for run, of in data["runs"].items() if budgets[run].endswith(ADVERSARIAL)}


def segments_are_monotone(data: dict[str, Any]) -> Answer:
    """Coordinates turn less often than those of the same words in any order."""
    gains, parts = [], []
    for run, of_run in treated(data).items():
        if "permuted_turns" not in of_run:
            return not_kept("how often the goals of permuted words turn")
        if of_run["permuted_turns"] is not None:
            share, (low, high) = Estimate.from_json(of_run["turns"]), of_run["permuted_turns"]
            # (Where permuted words are within these bounds, so is how far below them ours are.)
            gains.append(Estimate((low + high) / 2, low, high, share.count).shifted(-share.mean))
            permuted = "{:.1f} to {:.1f}".format(*_percent((low, high)))
            parts.append(
                f"{run}: {share.show(100)} % of inner points turn, of permuted words {permuted} %"
            )
    return _answer(data, gains, parts)


def changes_go_together(data: dict[str, Any]) -> Answer:
    gains, parts = [], []
    for run, of in treated(data).items():
        if of["correlation"] is not None:
            value, bound = of["correlation"], of["bound"]
            gains.append(Estimate(value, value - bound, value + bound, data["pictures"][run]))
            parts.append(f"{run}: {value:.2f}, and permuted words stay below {bound:.2f}")
    return _answer(data, gains, parts)


def goals_collapse(data: dict[str, Any]) -> Answer:
    """In some captions of some run: in more than none, beyond chance."""
    gains, parts = [], []
    for run, of_run in treated(data).items():
        if "collapsed" not in of_run:
            return not_kept(f"the captions with a mean cosine above {COLLAPSED:g}")
        share, mean = (Estimate.from_json(of_run[name]) for name in ("collapsed", "collapse"))
        if share.count:
            gains.append(share)
            parts.append(
                f"{run}: {share.show(100)} % of captions have a mean cosine above {COLLAPSED:g} "
                f"(mean of all: {mean.show(digits=2)})"
            )
    return _answer(data, [max(gains, key=lambda gain: gain.low)] if gains else [], parts)


def _answer(data: dict[str, Any], gains: Sequence[Estimate], parts: Sequence[str]) -> Answer:
    if not gains:
        return untested("The captions have too few words." if treated(data) else NOT_TREATED)
    return judge(gains, "; ".join(parts) + ".")


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
