"""Self-critical sequence training (paper 0, eq. 12; Rennie et al. 2017)."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor, nn

from sightline.config import require_at_least
from sightline.data.dataset import CaptionedImage
from sightline.decoding.beam import BeamOptions, beam_search
from sightline.decoding.constraints import Constraints
from sightline.decoding.inference import inference
from sightline.decoding.stepwise import greedy
from sightline.decoding.words import with_start
from sightline.errors import ConfigError
from sightline.models.interface import Unrolled
from sightline.models.layers import without_dropout
from sightline.models.transformer import BothPasses
from sightline.text.vocabulary import END, PAD, Vocabulary
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.aligned import has_masks, mask_terms
from sightline.training.objectives.objective import Objective, Term
from sightline.training.objectives.policy import policy_log_probs
from sightline.training.objectives.reward import Reward, check_weights
from sightline.training.objectives.sampling import sample_captions


@dataclass(frozen=True)
class SelfCriticalOptions:
    """What captions are sampled, what they are worth, and what that is compared with."""

    reward: dict[str, float] = field(default_factory=lambda: {"cider_d": 1.0})
    samples: int = 5  # captions per picture
    # From the model's distribution, or the captions of a beam search (Cornia et al. 2020).
    sampling: Literal["multinomial", "beam"] = "multinomial"
    # Of the distribution that captions are drawn from and that learns. Below 1 it is nearer to what
    # a beam search finds, and rid of the stray words that label smoothing leaves possible.
    temperature: float = 1.0
    # The reward of the greedy caption, or the mean of the picture's other samples (Luo 2020).
    baseline: Literal["others", "greedy"] = "others"
    count_end: bool = True  # the end is a word of CIDEr-D; without, captions learn to end in "a"
    max_length: int = 20
    # Score captions under dropout. They are drawn without it, so the gradient is then that of
    # another policy than the one they are from; without, it is the policy gradient itself.
    dropout: bool = False
    penalty: float = 0.035  # λ of the mask networks, in a captioner that has them (eq. 4)

    def __post_init__(self) -> None:
        check_weights(self.reward)
        require_at_least(1, "objective", samples=self.samples, max_length=self.max_length)
        if self.baseline == "others" and self.samples < 2:
            raise ConfigError("objective.samples: must be at least 2, for the baseline")
        if self.temperature <= 0:
            raise ConfigError("objective.temperature: must be above 0")
        if self.sampling == "beam" and self.temperature != 1:
            raise ConfigError("objective.temperature: cannot be set with sampling: beam")


class SelfCritical(Objective):
    """-E[r(y)] over captions y of the model's own, by its policy gradient.

    Captions are drawn without gradient and without dropout; one parallel pass, without dropout too,
    then gives the gradient of their log-probabilities, so any model learns so at about the cost of
    a step of cross-entropy and a greedy decoding. The mask networks of an aligned captioner go on
    playing against it: they minimise the reward instead of the likelihood.
    """

    def __init__(self, options: SelfCriticalOptions) -> None:
        self.options = options
        self.limits = Constraints(max_length=options.max_length)
        self.reward: Reward | None = None

    def prepare(self, images: Sequence[CaptionedImage], vocabulary: Vocabulary) -> None:
        self.reward = Reward(self.options.reward, images, vocabulary, self.options.count_end)

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        if self.reward is None or batch.images is None:
            raise ConfigError("objective self_critical: no references were given")
        captions, base = self.sample(model, batch)
        rewards = self.reward(captions, batch.images)
        if self.options.baseline == "greedy":
            baseline = self.reward(base, batch.images)
        else:
            total = rewards.sum(1, keepdim=True)
            baseline = (total - rewards) / (rewards.shape[1] - 1)
        advantage = rewards - baseline
        # Samples weigh as many captions as the batch has, so that terms are means over samples.
        share = batch.captions / rewards.numel()

        def surrogate(unrolled: Unrolled) -> Term:
            temperature = self.options.temperature
            log_probs = policy_log_probs(unrolled.logits, captions, self.limits, temperature)
            return Term(-share * (advantage * log_probs.sum(-1)).sum(), "caption")

        inputs = with_start(captions)
        terms: dict[str, Term] = {}
        with nullcontext() if self.options.dropout else without_dropout(model):
            if has_masks(model):
                passes: BothPasses = model(batch.regions, inputs, perturb=True)
                terms["surrogate"] = surrogate(passes.aligned)
                said = batch.tokens / (captions != PAD).sum() * (captions != PAD)
                terms |= mask_terms(passes, surrogate(passes.perturbed), said, self.options.penalty)
            else:
                terms["surrogate"] = surrogate(model(batch.regions, inputs))
        return {
            **terms,
            "reward": Term(share * rewards.sum(), "caption", 0.0),
            "baseline": Term(share * baseline.expand_as(rewards).sum(), "caption", 0.0),
            "length": Term(share * (captions > END).sum(), "caption", 0.0),
        }

    def sample(self, model: nn.Module, batch: CaptionBatch) -> tuple[Tensor, Tensor]:
        """Captions `(B, S, T)`, and the greedy ones `(B, 1, T)` where they are the baseline."""
        count = self.options.samples
        # In the precision that they are scored in, or they would be those of another policy.
        with self.autocast(), inference(model) as captioner:
            memory = captioner.encode(batch.regions)
            if self.options.sampling == "beam":
                options = BeamOptions(beam=count, n_best=count, constraints=self.limits)
                captions = beam_search(captioner, memory, options).tokens
            else:
                captions = sample_captions(
                    captioner, memory, count, self.limits, self.options.temperature
                )
            if self.options.baseline == "others":
                return captions, captions[:, :0]
            return captions, greedy(captioner, memory, self.limits).tokens
