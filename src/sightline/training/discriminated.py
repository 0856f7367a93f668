"""Maximum likelihood with the discriminator alongside: the first stage of paper 2."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.data.vocabulary import END, PAD, START, UNKNOWN
from sightline.decoding.constraints import Constraints
from sightline.decoding.stepwise import SampleOptions, sample
from sightline.errors import ConfigError
from sightline.models.hierarchical import Hierarchical, Judged, goal_collapse, goals_of
from sightline.training.batch import CaptionBatch
from sightline.training.cross_entropy import CrossEntropy
from sightline.training.objective import Term


class Discriminated(CrossEntropy):
    """The terms of `cross_entropy` for the captioner; for the discriminator, its own.

    `discriminator` is the cross-entropy of its verdict on each caption and on one that the model
    made up for the same picture; it trains the discriminator alone, and no other term does.
    `accuracy`, the share of right verdicts, and `collapse`, the mean cosine between the goals of a
    caption's words, are reported and train nothing.

    >>> from sightline.training.objective import create_objective
    >>> type(create_objective({"name": "discriminated", "label_smoothing": 0.1})).__name__
    'Discriminated'
    """

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        inputs = self._inputs(model, batch, epoch)
        fakes = sample_captions(captioner_in(model), batch)
        both: Judged = model(batch.regions, inputs, side_by_side(batch, fakes))
        unrolled, verdicts = both
        terms = self._terms_of(unrolled, batch)

        # A caption that was cut, or holds an unknown word, would give itself away: those made up
        # always end, and say only words they know. It is not judged, nor is its counterpart.
        judged = (batch.targets == END).any(-1) & (batch.targets != UNKNOWN).all(-1)
        real, fake = verdicts.chunk(2, -1)
        losses = functional.softplus(-real) + functional.softplus(fake)  # -log D - log(1 - D)
        right = ((real > 0).float() + (fake < 0).float()) / 2
        share = (right * judged).sum() / judged.sum().clamp(min=1)
        collapse = goal_collapse(goals_of(unrolled.signals).detach(), batch.targets != PAD)
        terms["discriminator"] = Term(batch.weight * (losses * judged).sum(), "caption")
        terms["accuracy"] = Term(share * batch.captions, "caption", 0.0)
        terms["collapse"] = Term(batch.weight * collapse.sum(), "caption", 0.0)
        return terms


def captioner_in(model: nn.Module) -> Hierarchical:
    """The captioner inside whatever distributes it."""
    for module in model.modules():
        if isinstance(module, Hierarchical):
            return module
    raise ConfigError("objective discriminated: the model has no discriminator; hierarchical has")


@torch.no_grad()
def sample_captions(captioner: Hierarchical, batch: CaptionBatch) -> Tensor:
    """As many captions of each picture as it has `(B, K, T)`, as the captioner would say them.

    They are drawn without dropout, and no longer than the longest of the batch. The seed comes
    from torch's global generator, which a checkpoint keeps.
    """
    seed = int(torch.randint(2**31, ()))
    limits = Constraints(max_length=max(batch.targets.shape[2] - 1, 1))
    options = SampleOptions(samples=batch.targets.shape[1], seed=seed, constraints=limits)
    was_training = captioner.training
    captioner.eval()
    found = sample(captioner, captioner.encode(batch.regions), options)
    captioner.train(was_training)
    return found.tokens


def side_by_side(batch: CaptionBatch, fakes: Tensor) -> Tensor:
    """The captions of a batch and those made up `(B, 2K, 1 + T)`, each from its start word."""
    length = max(batch.targets.shape[2], fakes.shape[2])
    captions = torch.cat(
        [
            functional.pad(tokens, (0, length - tokens.shape[2]), value=PAD)
            for tokens in (batch.targets, fakes)
        ],
        1,
    )
    return functional.pad(captions, (1, 0), value=START)
