"""The adversarial phase of paper 2, with the losses of LeakGAN (Guo et al. 2018)."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from sightline.config import require_at_least
from sightline.decoding.constraints import Constraints
from sightline.decoding.inference import inference
from sightline.decoding.words import with_start
from sightline.models.hierarchical import Hierarchical, Judged, goals_of
from sightline.models.interface import Unrolled
from sightline.text.vocabulary import PAD, START
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.adversarial_pretraining import (
    AdversarialPretraining,
    judged_rows,
    limits_of,
)
from sightline.training.objectives.cross_entropy import CrossEntropyOptions
from sightline.training.objectives.objective import Term
from sightline.training.objectives.policy import policy_log_probs
from sightline.training.objectives.sampling import sample_with_rollouts

SHARPNESS = 16.0  # δ of `rescale`, as in LeakGAN's code


@dataclass(frozen=True)
class AdversarialOptions(CrossEntropyOptions):
    """Those of `cross_entropy`, whose terms stay in the loss, and those of the game beside it."""

    likelihood: float = 1.0  # weight of the terms of cross-entropy; the terms of the game have 1
    rollouts: int = 3  # completions of each prefix; their mean verdict is its value
    horizon: int = 4  # c: words that a goal looks ahead
    intrinsic: float = 0.1  # weight of setting and following goals; LeakGAN: 1
    extrinsic: float = 4.0  # weight of what a word adds to the value; LeakGAN: 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, "objective", rollouts=self.rollouts, horizon=self.horizon)
        weights = {name: getattr(self, name) for name in ("likelihood", "intrinsic", "extrinsic")}
        require_at_least(0, "objective", **weights)


class Adversarial(AdversarialPretraining):
    """The terms of `adversarial_pretraining`, and those of MANAGER and WORKER in a game against the
    discriminator, over a sampled caption of each picture.

    `manager`: goals should point where the aspects of the caption went within `horizon` words, the
    more so the more what it came to is worth. `worker`: the policy gradient of words rewarded for
    where they take the aspects and for their value. What the discriminator says of the caption is
    given: only its own term trains it. The caption is drawn without dropout and scored without:
    under dropout, its gradient would be that of another policy than the one it is from. `value`,
    the mean verdict on the captions drawn, and `intrinsic`, the mean reward of a word for
    following goals, are reported and train nothing.

    >>> from sightline.training.objectives.registry import create_objective
    >>> create_objective({"name": "adversarial", "rollouts": 2}).options.horizon
    4
    """

    options: AdversarialOptions

    def __init__(self, options: AdversarialOptions) -> None:
        super().__init__(options)

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        inputs = self._inputs(model, batch, epoch)
        limits = limits_of(batch)
        sampled = sample_and_judge(model, batch, self.options.rollouts, limits, self.autocast)
        fake = sampled.captions
        judged = judged_rows(model, batch, fake)
        both: Judged = model(batch.regions, inputs, judged, with_start(fake))
        assert both.drawn is not None
        terms = self._judged_terms(both, batch)
        return terms | self._game_terms(both.drawn, sampled, limits, batch)

    def _terms_of(self, unrolled: Unrolled, batch: CaptionBatch) -> dict[str, Term]:
        share = self.options.likelihood
        terms = super()._terms_of(unrolled, batch)
        return {name: replace(term, weight=share * term.weight) for name, term in terms.items()}

    def _game_terms(
        self, unrolled: Unrolled, sampled: "Sampled", limits: Constraints, batch: CaptionBatch
    ) -> dict[str, Term]:
        captions, horizon = sampled.captions, self.options.horizon
        said = captions.squeeze(1) != PAD
        goals = goals_of(unrolled.signals).squeeze(1)
        worth = rescale(sampled.values, said)

        arrival = (torch.arange(said.shape[1], device=said.device) + horizon).minimum(
            said.sum(1, keepdim=True)
        )
        aim = cosines_ahead(sampled.aspects, goals, arrival)
        manager = worth.gather(1, arrival - 1) * aim * said

        followed = intrinsic_rewards(sampled.aspects, goals.detach(), horizon)
        rewards = followed * said
        usual = rewards.sum(0) / said.sum(0)  # at the same word of the captions that have it
        rewards = self.options.intrinsic * (rewards - usual)
        rewards = rewards + self.options.extrinsic * gains(sampled.values)
        log_probs = policy_log_probs(unrolled.logits, captions, limits).squeeze(1)
        worker = rewards * log_probs * said

        # A sampled caption stands for all captions of its picture, so terms are means over them.
        share = batch.captions / len(captions)
        return {
            "manager": Term(-share * manager.sum(), "caption", self.options.intrinsic),
            "worker": Term(-share * worker.sum(), "caption"),
            "value": Term(share * sampled.values[:, -1].sum(), "caption", 0.0),
            "intrinsic": Term(batch.captions * followed[said].mean(), "caption", 0.0),
        }


class Sampled(NamedTuple):
    """A caption of each picture, and what the discriminator makes of it, word by word."""

    captions: Tensor  # (B, 1, T)
    values: Tensor  # (B, T): how probably a caption that begins so passes for a person's
    aspects: Tensor  # (B, 1 + T, W): before the first word, and after each


def sample_and_judge(
    model: nn.Module,
    batch: CaptionBatch,
    rollouts: int,
    limits: Constraints,
    autocast: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Sampled:
    """Captions drawn from the model, and the value of each of their prefixes.

    It is the mean verdict on `rollouts` completions; on a whole caption, the verdict itself.
    Captions are drawn in the precision that they are scored in, or they would be those of another
    policy; verdicts, whose differences are the rewards, are in 32 bits.
    """
    with inference(model) as captioner:
        discriminator = cast(Hierarchical, captioner).discriminator
        with autocast():
            memory = captioner.encode(batch.regions)
            rows = sample_with_rollouts(captioner, memory, rollouts, limits)
        longest = int((rows[:, 0] != PAD).sum(1).max())
        captions = rows[:, :1, :longest]
        picture = memory.get("picture")
        verdicts = torch.sigmoid(discriminator(functional.pad(rows, (1, 0), value=START), picture))
        of_prefixes = verdicts[:, 1:].reshape(len(rows), longest - 1, rollouts).mean(2)
        read = discriminator.features(functional.pad(captions, (1, 0), value=START), picture)
        values = torch.cat([of_prefixes, verdicts[:, :1]], 1)
        return Sampled(captions, values, discriminator.aspects(read).squeeze(1))


def gains(values: Tensor) -> Tensor:
    """What each word adds to the value of what was said before it `(B, T)`.

    That value does not depend on the word, so it is a baseline, and a better one than the mean of
    other pictures' captions: some pictures are easier to caption, or to judge, than others. For
    the first word it is the mean over the batch.

    >>> gains(torch.tensor([[0.5, 0.6], [0.7, 0.1]]))
    tensor([[-0.1000,  0.1000],
            [ 0.1000, -0.6000]])
    """
    first = values[:, :1].mean().expand(len(values), 1)
    return values - torch.cat([first, values[:, :-1]], 1)


def rescale(values: Tensor, said: Tensor) -> Tensor:
    """Values `(B, T)` by their ranks among those of the same word: σ(δ (½ - rank / B)).

    Ranks count from ½, so that the middle one becomes ½; equal values share the mean of their
    ranks. B is the number of captions that have such a word, and only these are ranked.

    >>> rescale(torch.tensor([[0.9], [0.2], [0.2]]), torch.ones(3, 1).bool()).squeeze(1)
    tensor([0.9952, 0.0650, 0.0650])
    """
    ranked, others = values[:, None], values[None]
    above = ((others > ranked).float() + 0.5 * (others == ranked).float()) * said[None]
    rank = above.sum(1) / said.sum(0).clamp(min=1)
    return torch.sigmoid(SHARPNESS * (0.5 - rank))


def cosines_ahead(aspects: Tensor, goals: Tensor, arrival: Tensor) -> Tensor:
    """Cosine `(B, T)` of each goal with the change of aspects from its word up to `arrival`.

    Aspects are `(B, 1 + T, W)`, goals `(B, T, W)`: goal t is set when t words have been said.
    """
    reached = aspects.gather(1, arrival[..., None].expand_as(goals))
    return functional.cosine_similarity(reached - aspects[:, :-1], goals, -1)


def intrinsic_rewards(aspects: Tensor, goals: Tensor, horizon: int) -> Tensor:
    """What each word earns `(B, T)` for following goals.

    It is the mean, over the last `horizon` goals, of the cosine between a goal and the change of
    aspects since it was set.
    """
    length = goals.shape[1]
    total = torch.zeros_like(goals[..., 0])
    for i in range(1, min(horizon, length) + 1):
        change = aspects[:, i:] - aspects[:, :-i]
        total[:, i - 1 :] += functional.cosine_similarity(change, goals[:, : length + 1 - i], -1)
    return total / torch.arange(1, length + 1, device=goals.device).clamp(max=horizon)
