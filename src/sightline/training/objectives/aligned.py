"""Train the captioner and mask networks against each other (paper 0, eq. 4 and 11)."""

import sys
from dataclasses import dataclass, replace

from torch import Tensor, nn
from tqdm import tqdm

from sightline.config import require_at_least
from sightline.errors import ConfigError
from sightline.models.alignment import AlignedAttention
from sightline.models.interface import CaptionModel
from sightline.models.transformer import BothPasses
from sightline.text.vocabulary import PAD
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.cross_entropy import (
    CrossEntropy,
    CrossEntropyOptions,
    negative_log_likelihood,
)
from sightline.training.objectives.objective import Term

COLLAPSED = (0.02, 0.98)  # means of the masks outside of these say that nothing is told apart
MEMORY = 0.99  # share of the running mean that a step leaves as it is


@dataclass(frozen=True)
class AlignedOptions(CrossEntropyOptions):
    """Weights of the terms; those of cross-entropy are the captioner's."""

    penalty: float = 0.035  # λ of eq. 4; the paper's best (its figure 4)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(0, "objective", penalty=self.penalty)


class Aligned(CrossEntropy):
    """Eq. 11 for the captioner, with aligned attention, and eq. 4 for its mask networks.

    One pass of each kind, one backward pass: the aligned one takes the masks as constants, the
    perturbed one everything else.

    Eq. 4, as reduced here, for one caption: Σ_t (log p(y_t; α^p) + λ Σ_i (1 - m_ti)²), with the
    mean over layers and heads of the last sum, so that λ weighs one mask vector of one word against
    the likelihood of that word, however deep the model is. (Lu et al. 2021 take the root of the sum
    over everything in the batch, over the number of regions: a penalty of next to nothing.)

    Terms: those of cross-entropy, `perturbed` (the likelihood under perturbation), `penalty`, and
    to be watched, `mask` and `gate`, their means.
    """

    options: AlignedOptions

    def __init__(self, options: AlignedOptions) -> None:
        super().__init__(options)
        self.mean_mask: float | None = None  # a running mean
        self.has_warned = False

    def check(self, model: CaptionModel) -> None:
        if not has_masks(model):
            raise ConfigError(
                "objective aligned: the model has no alignment; use aligned_transformer, or give "
                "spatial_transformer 'alignment'"
            )

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        inputs = self._inputs(model, batch, epoch)
        passes: BothPasses = model(batch.regions, inputs, perturb=True)
        likelihood = negative_log_likelihood(passes.perturbed, batch).sum()
        said = batch.weight * (batch.targets != PAD)
        return {
            **self._terms_of(passes.aligned, batch),
            **mask_terms(passes, Term(likelihood, "word"), said, self.options.penalty),
        }

    def observe(self, values: dict[str, float]) -> None:
        """Warn once if the masks have collapsed."""
        mean, before = values["mask"], self.mean_mask
        self.mean_mask = mean if before is None else MEMORY * before + (1 - MEMORY) * mean
        if not self.has_warned and not COLLAPSED[0] <= self.mean_mask <= COLLAPSED[1]:
            self.has_warned = True
            way = "raise" if self.mean_mask < COLLAPSED[0] else "lower"
            tqdm.write(  # above the bar
                f"Warning: the masks have collapsed to {self.mean_mask:.3f}, so they no longer "
                f"distinguish regions: {way} objective.penalty",
                file=sys.stderr,
            )

    def state(self) -> dict[str, float]:
        if self.mean_mask is None:
            return {}
        return {"mean_mask": self.mean_mask, "has_warned": float(self.has_warned)}

    def load_state(self, state: dict[str, float]) -> None:
        self.mean_mask = state.get("mean_mask")
        self.has_warned = bool(state.get("has_warned"))


def has_masks(model: nn.Module) -> bool:
    """Whether any attention of a captioner is aligned."""
    return any(isinstance(module, AlignedAttention) for module in model.modules())


def mask_terms(
    passes: BothPasses, loss: Term, said: Tensor, penalty_weight: float
) -> dict[str, Term]:
    """What the mask networks minimise (eq. 4), given the captioning loss under perturbation.

    `said` `(B, K, T)` weighs the words.
    """
    aligned, perturbed = passes
    terms = {
        "perturbed": replace(loss, weight=-1.0),
        "penalty": Term((perturbed.signals["penalty"] * said).sum(), "word", penalty_weight),
        "mask": Term((perturbed.signals["mask"] * said).sum(), "word", 0.0),
    }
    if "gate" in aligned.signals:
        terms["gate"] = Term((aligned.signals["gate"] * said).sum(), "word", 0.0)
    return terms
