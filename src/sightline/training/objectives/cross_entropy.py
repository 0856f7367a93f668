"""Cross-entropy, with the doubly stochastic penalty (paper 1, section 4.2.1)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.config import require_at_least
from sightline.models.interface import Unrolled
from sightline.text.vocabulary import PAD
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.objective import Objective, Term


@dataclass(frozen=True)
class CrossEntropyOptions:
    """Weights of the terms."""

    label_smoothing: float = 0.0
    doubly_stochastic: float = 0.0  # λ; the original code uses 1.0 with attention
    # Share of input words that are the model's own guesses, reached after `sampling_epochs`.
    scheduled_sampling: float = 0.0
    sampling_epochs: int = 10

    def __post_init__(self) -> None:
        require_at_least(1, "objective", sampling_epochs=self.sampling_epochs)


class CrossEntropy(Objective):
    """The negative log-likelihood of the captions, and the terms that keep it honest."""

    def __init__(self, options: CrossEntropyOptions) -> None:
        self.options = options

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        inputs = self._inputs(model, batch, epoch)
        return self._terms_of(model(batch.regions, inputs), batch)

    def _terms_of(self, unrolled: Unrolled, batch: CaptionBatch) -> dict[str, Term]:
        """The terms that the captions' own words make."""
        terms = {"nll": Term(negative_log_likelihood(unrolled, batch).sum(), "word")}
        if self.options.label_smoothing:
            excess = smoothing_excess(unrolled, batch).sum()
            terms["smoothing"] = Term(excess, "word", self.options.label_smoothing)
        if self.options.doubly_stochastic:
            penalty = doubly_stochastic_penalty(unrolled, batch).sum()
            terms["attention"] = Term(penalty, "caption", self.options.doubly_stochastic)
        return terms

    def _inputs(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> Tensor:
        """Scheduled sampling (Bengio et al. 2015), for all words at once.

        A first pass without gradient predicts every word from the true ones; each input word is
        then replaced by the model's guess with the probability of this epoch (parallel scheduled
        sampling, Duckworth et al. 2019), so any model can be trained so, recurrent or not.
        """
        share = self.options.scheduled_sampling * min(epoch / self.options.sampling_epochs, 1.0)
        if share == 0:
            return batch.inputs
        with torch.no_grad():
            guesses = model(batch.regions, batch.inputs).logits[:, :, :-1].argmax(-1)
        taken = (torch.rand(guesses.shape, device=guesses.device) < share) & (
            batch.targets[:, :, :-1] != PAD
        )
        inputs = batch.inputs.clone()
        inputs[:, :, 1:] = torch.where(taken, guesses, inputs[:, :, 1:])
        return inputs


def negative_log_likelihood(unrolled: Unrolled, batch: CaptionBatch) -> Tensor:
    """-log p of every word `(B, K, T)`, zero at padding."""
    losses = functional.cross_entropy(
        unrolled.logits.flatten(0, 2), batch.targets.flatten(), ignore_index=PAD, reduction="none"
    )
    return batch.weight * losses.view(batch.targets.shape)


def smoothing_excess(unrolled: Unrolled, batch: CaptionBatch) -> Tensor:
    """What label smoothing adds to -log p of every word `(B, K, T)`, before its weight s.

    (1 - s) nll + s * mean over the vocabulary = nll + s * (mean - nll), so that what is reported as
    nll is the likelihood itself. In the difference the normaliser cancels.
    """
    target = unrolled.logits.gather(3, batch.targets[..., None]).squeeze(3)
    excess = target - unrolled.logits.mean(-1)
    return batch.weight * excess.masked_fill(batch.targets == PAD, 0.0)


def doubly_stochastic_penalty(unrolled: Unrolled, batch: CaptionBatch) -> Tensor:
    """Σ_i (1 - Σ_t α_ti)² of every caption `(B, K)`, summed over the regions there are.

    Its floor is (L - T)² / L for T words over L regions, so it is reported apart.
    """
    said = (batch.targets != PAD)[..., None]
    looked = (unrolled.attention * said).sum(2)
    penalty = ((1 - looked) ** 2).masked_fill(~batch.regions.mask[:, None], 0.0).sum(-1)
    return batch.weight * penalty.masked_fill(batch.targets[..., 0] == PAD, 0.0)
