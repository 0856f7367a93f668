"""The lower bound of hard attention, by REINFORCE (paper 1, section 4.1)."""

from dataclasses import dataclass

from torch import nn

from sightline.errors import ConfigError
from sightline.models.hard_attention import HardAttention
from sightline.models.interface import CaptionModel, Unrolled
from sightline.text.vocabulary import PAD
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.cross_entropy import (
    doubly_stochastic_penalty,
    negative_log_likelihood,
    smoothing_excess,
)
from sightline.training.objectives.objective import Objective, Term


@dataclass(frozen=True)
class ReinforceOptions:
    """Weights of the terms. The paper sets λ_r and λ_e by cross-validation.

    The original code's λ_r is 0.1 for a reward that is the mean over a caption's words; ours is the
    paper's log p(y | s, a), a sum over about eleven words, hence 0.01.
    """

    reinforce: float = 0.01  # λ_r
    entropy: float = 0.002  # λ_e, as in the original code
    baseline_decay: float = 0.9
    doubly_stochastic: float = 0.0
    # Ours, for comparisons with soft attention: of log p(y | s̃, a) where it is a loss. As a reward
    # it stays what the bound says.
    label_smoothing: float = 0.0


class Reinforce(Objective):
    """-log p(y | s̃, a), and surrogates whose gradients are the other two terms of the estimator."""

    def __init__(self, options: ReinforceOptions) -> None:
        self.options = options
        self.baseline: float | None = None  # b; the first batch only sets it

    def check(self, model: CaptionModel) -> None:
        if not isinstance(model, HardAttention):
            raise ConfigError(
                "objective reinforce: the model samples no regions; use hard_attention"
            )

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        unrolled: Unrolled = model(batch.regions, batch.inputs)
        said = batch.weight * (batch.targets != PAD)
        nll = negative_log_likelihood(unrolled, batch)
        log_likelihood = -nll.sum(-1).detach()  # log p(y | s̃, a), (B, K)
        log_places = (unrolled.signals["log_location"] * said).sum(-1)  # log p(s̃ | a)
        baseline = log_likelihood if self.baseline is None else self.baseline
        surrogate = -((log_likelihood - baseline) * log_places).sum()
        entropy = (unrolled.signals["entropy"] * said).sum()
        terms = {
            "nll": Term(nll.sum(), "word"),
            "reinforce": Term(surrogate, "caption", self.options.reinforce),
            "entropy": Term(-entropy, "word", self.options.entropy),
            "log_likelihood": Term(log_likelihood.sum(), "caption", 0.0),
        }
        if self.options.label_smoothing:
            excess = smoothing_excess(unrolled, batch).sum()
            terms["smoothing"] = Term(excess, "word", self.options.label_smoothing)
        if self.options.doubly_stochastic:
            penalty = doubly_stochastic_penalty(unrolled, batch).sum()
            terms["attention"] = Term(penalty, "caption", self.options.doubly_stochastic)
        return terms

    def observe(self, values: dict[str, float]) -> None:
        """b = 0.9 b + 0.1 log p(y | s̃, a), with the mean over the whole batch."""
        likelihood, decay = values["log_likelihood"], self.options.baseline_decay
        self.baseline = (
            likelihood
            if self.baseline is None
            else decay * self.baseline + (1 - decay) * likelihood
        )

    def state(self) -> dict[str, float]:
        return {} if self.baseline is None else {"baseline": self.baseline}

    def load_state(self, state: dict[str, float]) -> None:
        self.baseline = state.get("baseline")
