"""Maximum likelihood with the discriminator alongside: the first stage of paper 2."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.data.vocabulary import END, PAD, START, UNKNOWN
from sightline.decoding.constraints import Constraints
from sightline.errors import ConfigError
from sightline.models.hierarchical import Hierarchical, Judged, goal_collapse, goals_of
from sightline.models.interface import CaptionModel
from sightline.training.batch import CaptionBatch
from sightline.training.cross_entropy import CrossEntropy
from sightline.training.drawing import captioning, draw
from sightline.training.objective import Term


class Discriminated(CrossEntropy):
    """The terms of `cross_entropy` for the captioner; for the discriminator, its own.

    `discriminator` is the cross-entropy of its verdicts on one caption of each picture, drawn at
    random, and on one that the model made up; they stand for all captions of the picture. It trains
    the discriminator alone, and no other term does.
    `accuracy`, the share of right verdicts, and `collapse`, the mean cosine between the goals of a
    caption's words, are reported and train nothing.

    >>> from sightline.training.objective import create_objective
    >>> type(create_objective({"name": "discriminated", "label_smoothing": 0.1})).__name__
    'Discriminated'
    """

    def check(self, model: CaptionModel) -> None:
        if not isinstance(model, Hierarchical):
            raise ConfigError("objective: the model has no discriminator; hierarchical has")

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        inputs = self._inputs(model, batch, epoch)
        real, fake = one_of_each(batch), sample_captions(model, batch)
        both: Judged = model(batch.regions, inputs, side_by_side(real, fake))
        return self._judged_terms(both, real, batch)

    def _judged_terms(self, both: Judged, real: Tensor, batch: CaptionBatch) -> dict[str, Term]:
        """The terms of a pass over the captions, and of verdicts on real and made-up ones."""
        unrolled, verdicts = both
        terms = self._terms_of(unrolled, batch)

        # A caption that was cut, or holds an unknown word, would give itself away: those made up
        # always end, and say only words they know. It is not judged, nor is its counterpart.
        judged = ((real == END).any(-1) & (real != UNKNOWN).all(-1)).squeeze(1)
        said = batch.targets != PAD
        of_real, of_fake = verdicts.unbind(1)
        losses = functional.softplus(-of_real) + functional.softplus(of_fake)  # -log D - log(1-D)
        loss = (losses * judged * said.any(-1).sum(-1)).sum()
        right = ((of_real > 0).float() + (of_fake < 0).float()) / 2
        share = (right * judged).sum() / judged.sum().clamp(min=1)
        collapse = goal_collapse(goals_of(unrolled.signals).detach(), said).sum()
        terms["discriminator"] = Term(batch.weight * loss, "caption")
        terms["accuracy"] = Term(share * batch.captions, "caption", 0.0)
        terms["collapse"] = Term(batch.weight * collapse, "caption", 0.0)
        return terms


def one_of_each(batch: CaptionBatch) -> Tensor:
    """One caption of each picture `(B, 1, T)`, drawn at random.

    Not one after the other: where the captions of all pictures come in the same order, as the five
    wordings of a scene do, an epoch of first ones would teach the discriminator that people only
    ever write the first, and the next epoch that they never do.
    """
    there = (batch.targets[..., 0] != PAD).float()
    which = torch.multinomial(there, 1)
    return batch.targets.gather(1, which[..., None].expand(-1, -1, batch.targets.shape[2]))


def limits_of(batch: CaptionBatch) -> Constraints:
    """Captions are made up no longer than the longest of the batch."""
    return Constraints(max_length=max(batch.targets.shape[2] - 1, 1))


def sample_captions(model: nn.Module, batch: CaptionBatch) -> Tensor:
    """A caption of each picture `(B, 1, T)`, as the captioner would say it."""
    with captioning(model) as captioner:
        return draw(captioner, captioner.encode(batch.regions), 1, limits_of(batch))


def side_by_side(real: Tensor, fake: Tensor) -> Tensor:
    """Captions `(B, K, T)` of people and of the model as `(B, 2K, 1 + T)`, from the start word on.

    >>> side_by_side(torch.tensor([[[5, 2]]]), torch.tensor([[[6, 7, 2]]])).tolist()
    [[[1, 5, 2, 0], [1, 6, 7, 2]]]
    """
    return functional.pad(beside(real, fake), (1, 0), value=START)


def beside(first: Tensor, second: Tensor) -> Tensor:
    """Rows of words `(B, K, T)` and further ones, padded to one length."""
    length = max(first.shape[2], second.shape[2])
    rows = [
        functional.pad(tokens, (0, length - tokens.shape[2]), value=PAD)
        for tokens in (first, second)
    ]
    return torch.cat(rows, 1)
