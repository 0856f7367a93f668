"""What is minimised: named terms, computed from a model and a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from sightline.data.dataset import CaptionedImage
from sightline.data.vocabulary import Vocabulary
from sightline.models.interface import CaptionModel
from sightline.training.batch import CaptionBatch


@dataclass(frozen=True)
class Term:
    """A part of the loss: a sum over this process's captions, and what it is reported per.

    The loss of a batch is the sum over captions that papers print, divided by the number of words
    in the whole batch (all processes), so that a learning rate means the same for any length.
    """

    total: Tensor
    per: Literal["word", "caption"]
    weight: float = 1.0  # 0: reported only


class Objective:
    """One training regime. Built from its own options by `create_objective`."""

    def check(self, model: CaptionModel) -> None:
        """Refuse a captioner that cannot be trained so."""

    def prepare(self, images: Sequence[CaptionedImage], vocabulary: Vocabulary) -> None:
        """Look at the training pictures and their captions once, before the first step."""

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        """The loss, in parts."""
        raise NotImplementedError

    def observe(self, values: dict[str, float]) -> None:
        """Take note of a step's terms as reported, over all processes."""

    def state(self) -> dict[str, float]:
        """What a checkpoint must keep of the objective itself."""
        return {}

    def load_state(self, state: dict[str, float]) -> None:
        """Take up where a checkpoint left off."""


def create_objective(options: dict[str, Any]) -> Objective:
    """The objective that a recipe names.

    >>> create_objective({"name": "cross_entropy", "label_smoothing": 0.1}).state()
    {}
    """
    from sightline.config import from_dict, nearest
    from sightline.errors import ConfigError
    from sightline.training.adversarial import Adversarial, AdversarialOptions
    from sightline.training.aligned import Aligned, AlignedOptions
    from sightline.training.cross_entropy import CrossEntropy, CrossEntropyOptions
    from sightline.training.discriminated import Discriminated
    from sightline.training.lrp_inference import LRPInference, LRPInferenceOptions
    from sightline.training.self_critical import SelfCritical, SelfCriticalOptions
    from sightline.training.variational import Variational, VariationalOptions

    table: dict[str, tuple[Any, type]] = {
        "cross_entropy": (CrossEntropy, CrossEntropyOptions),
        "self_critical": (SelfCritical, SelfCriticalOptions),
        "aligned": (Aligned, AlignedOptions),
        "discriminated": (Discriminated, CrossEntropyOptions),
        "adversarial": (Adversarial, AdversarialOptions),
        "lrp_inference": (LRPInference, LRPInferenceOptions),
        "variational": (Variational, VariationalOptions),
    }
    name = options.get("name", "cross_entropy")
    if name not in table:
        raise ConfigError(f"objective: none is called '{name}'; {nearest(str(name), list(table))}")
    build, kind = table[name]
    others = {key: value for key, value in options.items() if key != "name"}
    objective: Objective = build(from_dict(kind, others, f"objective {name}"))
    return objective
