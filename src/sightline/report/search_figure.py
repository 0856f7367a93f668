"""A hyper-parameter search as figures: how it went on, and what each setting did."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Tried(Protocol):
    """A trial, as `sightline.training.tuning` has them."""

    @property
    def settings(self) -> dict[str, Any]: ...
    @property
    def scores(self) -> tuple[tuple[int, float], ...]: ...
    @property
    def best(self) -> float: ...
    @property
    def pruned(self) -> bool: ...


def draw_search(
    attempts: Sequence[Tried], metric: str, logarithmic: Sequence[str] = ()
) -> "Figure":
    """Scores by epoch; the best so far by trial; and the score against each setting."""
    from matplotlib.figure import Figure

    keys = list(dict.fromkeys(key for attempt in attempts for key in attempt.settings))
    count = 2 + len(keys)
    columns = min(count, 3)
    rows = -(-count // columns)
    figure = Figure(figsize=(3.4 * columns, 2.9 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels[count:]:
        panel.axis("off")
    _draw_epochs(panels[0], attempts)
    _draw_progress(panels[1], attempts)
    for panel, key in zip(panels[2:count], keys, strict=True):
        _draw_setting(panel, attempts, key, key in logarithmic)
    for panel in panels[:count]:
        panel.set_ylabel(f"{metric}, dev (%)", fontsize=8)
    return figure


def _draw_epochs(panel: "Axes", attempts: Sequence[Tried]) -> None:
    for attempt in attempts:
        epochs = [epoch for epoch, _ in attempt.scores]
        scores = [100 * score for _, score in attempt.scores]
        colour, line = ("0.6", "--") if attempt.pruned else ("C0", "-")
        panel.plot(epochs, scores, line, color=colour, marker=".", linewidth=1)
    panel.set_xlabel("epoch (dashed: stopped early)", fontsize=8)


def _draw_progress(panel: "Axes", attempts: Sequence[Tried]) -> None:
    best, so_far = -math.inf, []
    for number, attempt in enumerate(attempts):
        best = max(best, attempt.best)
        so_far.append(100 * best)
        panel.plot(number, 100 * attempt.best, "x" if attempt.pruned else "o", color="0.6")
    panel.step(range(len(so_far)), so_far, where="post", color="C0")
    panel.set_xlabel("trial (crosses: stopped early)", fontsize=8)


def _draw_setting(panel: "Axes", attempts: Sequence[Tried], key: str, log: bool) -> None:
    values = [attempt.settings[key] for attempt in attempts]
    numbers = all(isinstance(value, int | float) for value in values)
    texts = list(dict.fromkeys(map(str, values)))
    for attempt, value in zip(attempts, values, strict=True):
        x = value if numbers else texts.index(str(value))
        mark = "x" if attempt.pruned else "o"
        panel.plot(x, 100 * attempt.best, mark, color="0.6" if attempt.pruned else "C0")
    if not numbers:
        panel.set_xticks(range(len(texts)), texts, fontsize=7)
    if log and numbers:
        panel.set_xscale("log")
    panel.set_xlabel(key, fontsize=8)
