"""What is minimised: named terms, computed from a model and a batch."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from sightline.data.dataset import CaptionedImage
from sightline.models.interface import CaptionModel
from sightline.text.vocabulary import Vocabulary
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

    # The run's precision, for what an objective computes with the captioner beside its forward
    # pass, which has it anyway. The loop sets it.
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext

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
