"""Maximum likelihood, with the discriminator trained alongside: the first phase of paper 2."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.decoding.constraints import Constraints
from sightline.decoding.inference import inference, unwrap
from sightline.errors import ConfigError
from sightline.models.hierarchical import Hierarchical, Judged, goal_collapse, goals_of
from sightline.models.interface import CaptionModel
from sightline.text.vocabulary import END, PAD, START, UNKNOWN
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.cross_entropy import CrossEntropy
from sightline.training.objectives.objective import Term
from sightline.training.objectives.sampling import sample_captions


class AdversarialPretraining(CrossEntropy):
    """The terms of `cross_entropy` for the captioner; for the discriminator, its own.

    `discriminator` is the cross-entropy of its verdicts on the captions of each picture and on one
    that the model made up, which weighs as much as they do. If it sees the picture, half of that
    weight goes to the captions of another picture, or it would learn what people write, but hardly
    of what (Reed et al. 2016, Dai et al. 2017). It trains the discriminator alone, and no other
    term does. `accuracy`, the share of right verdicts on a picture's own captions and on made-up
    ones, and `collapse`, the mean cosine between the goals of a caption's words, are reported and
    train nothing.

    >>> from sightline.training.objectives.registry import create_objective
    >>> type(create_objective({"name": "adversarial_pretraining", "label_smoothing": 0.1})).__name__
    'AdversarialPretraining'
    """

    def check(self, model: CaptionModel) -> None:
        if not isinstance(model, Hierarchical):
            raise ConfigError("objective: the model has no discriminator; use hierarchical")

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        inputs = self._inputs(model, batch, epoch)
        with self.autocast():
            fakes = sample_fakes(model, batch)
        rows = judged_rows(model, batch, fakes)
        both: Judged = model(batch.regions, inputs, rows)
        return self._judged_terms(both, batch)

    def _judged_terms(self, both: Judged, batch: CaptionBatch) -> dict[str, Term]:
        """The terms of a pass over the captions, and of verdicts on `judged_rows`."""
        unrolled, verdicts = both.unrolled, both.verdicts
        terms = self._terms_of(unrolled, batch)

        # A caption that was cut, or holds an unknown word, would give itself away: those made up
        # always end, and say only words they know. It is not judged, nor counts for its picture.
        real, said = batch.targets, batch.targets != PAD
        judged = ((real == END).any(-1) & (real != UNKNOWN).all(-1)).float()
        of_real, of_fake, of_other = verdicts.tensor_split([real.shape[1], real.shape[1] + 1], 1)
        for_fakes = functional.softplus(of_fake) * judged  # -log(1 - D)
        if of_other.shape[1]:
            for_others = functional.softplus(of_other) * another(judged)
            for_fakes = (for_fakes + for_others) / 2
        loss = (functional.softplus(-of_real) * judged + for_fakes).sum()  # -log D
        right = ((of_real > 0).float() + (of_fake < 0).float()) / 2
        share = (right * judged).sum() / judged.sum().clamp(min=1)
        collapse = goal_collapse(goals_of(unrolled.signals).detach(), said).sum()
        terms["discriminator"] = Term(batch.weight * loss, "caption")
        terms["accuracy"] = Term(share * batch.captions, "caption", 0.0)
        terms["collapse"] = Term(batch.weight * collapse, "caption", 0.0)
        return terms


def judged_rows(model: nn.Module, batch: CaptionBatch, fake: Tensor) -> Tensor:
    """What the discriminator reads of each picture `(B, N, 1 + T)`, from the start word on: its K
    captions, the one made up and, if it sees the picture, the captions of another one.
    """
    rows = beside(batch.targets, fake)
    if cast(Hierarchical, unwrap(model)).config.discriminator_sees_picture and len(fake) > 1:
        rows = beside(rows, another(batch.targets))
    return functional.pad(rows, (1, 0), value=START)


def another(of_pictures: Tensor) -> Tensor:
    """For each picture of a batch what belongs to another one: to the one before."""
    return of_pictures.roll(1, 0)


def limits_of(batch: CaptionBatch) -> Constraints:
    """Captions are made up no longer than the longest of the batch."""
    return Constraints(max_length=max(batch.targets.shape[2] - 1, 1))


def sample_fakes(model: nn.Module, batch: CaptionBatch) -> Tensor:
    """A caption of each picture `(B, 1, T)`, as the captioner would say it."""
    with inference(model) as captioner:
        return sample_captions(captioner, captioner.encode(batch.regions), 1, limits_of(batch))


def beside(first: Tensor, second: Tensor) -> Tensor:
    """Rows of words `(B, K, T)` and further ones, padded to one length."""
    length = max(first.shape[2], second.shape[2])
    rows = [
        functional.pad(tokens, (0, length - tokens.shape[2]), value=PAD)
        for tokens in (first, second)
    ]
    return torch.cat(rows, 1)
