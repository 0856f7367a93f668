"""Options that several experiments have; `--set NAME=VALUE` changes one."""

from dataclasses import dataclass

from sightline.config import require_at_least
from sightline.explain.methods import find_method
from sightline.metrics.scoring import check_metrics


@dataclass(frozen=True)
class NoOptions:
    """There are none."""


@dataclass(frozen=True)
class GalleryOptions:
    """How many words, captions or pictures are drawn."""

    shown: int = 12

    def __post_init__(self) -> None:
        require_at_least(0, "shown", shown=self.shown)


@dataclass(frozen=True)
class MethodOptions:
    """Explanation methods, as `sightline explain --method` names them."""

    methods: tuple[str, ...] = ("attention", "grad_cam", "guided_grad_cam", "lrp")

    def __post_init__(self) -> None:
        for method in self.methods:
            find_method(method)


@dataclass(frozen=True)
class ScoreOptions:
    """Metrics, as `sightline score` names them."""

    metrics: tuple[str, ...] = ("bleu", "rouge-l", "cider-d")

    def __post_init__(self) -> None:
        check_metrics(self.metrics)
