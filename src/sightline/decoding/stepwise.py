"""One word after another: greedy decoding and sampling."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from sightline.decoding.constraints import Constraints, constrain_
from sightline.decoding.hypotheses import Hypotheses
from sightline.errors import ConfigError
from sightline.models.interface import CaptionModel, Memory
from sightline.progress import advance
from sightline.text.vocabulary import END, PAD, START


@dataclass(frozen=True)
class SampleOptions:
    """How to sample: every row of a picture is a caption of its own."""

    samples: int = 1
    temperature: float = 1.0
    top_k: int = 0  # only among the k likeliest words; 0: among all
    top_p: float = 1.0  # only among the likeliest words that together have this probability
    seed: int = 0
    # The same random numbers for every picture: what is sampled of one does not depend on others.
    alike: bool = False
    constraints: Constraints = field(default_factory=Constraints)

    def __post_init__(self) -> None:
        if self.samples < 1 or self.temperature <= 0 or self.top_k < 0 or not 0 < self.top_p <= 1:
            raise ConfigError(
                "decoding: samples >= 1, temperature > 0, top_k >= 0 and 0 < top_p <= 1 are needed"
            )
        _no_required(self.constraints)


@torch.no_grad()
def greedy(
    model: CaptionModel, memory: Memory, constraints: Constraints | None = None
) -> Hypotheses:
    """The likeliest next word, again and again."""
    constraints = constraints or Constraints()
    _no_required(constraints)
    return _loop(model, memory, 1, constraints, lambda allowed: allowed.argmax(-1))


@torch.no_grad()
def sample(model: CaptionModel, memory: Memory, options: SampleOptions) -> Hypotheses:
    """Captions drawn from the model's distribution, the same for the same seed.

    `log_probs` are those of the model itself, before temperature and truncation.
    """
    device = next(iter(memory.values())).device
    generator = torch.Generator("cpu" if options.alike else device).manual_seed(options.seed)

    def pick(allowed: Tensor) -> Tensor:
        probabilities = truncate(allowed / options.temperature, options.top_k, options.top_p)
        if options.alike:
            return _sample_alike(probabilities, generator)
        return sample_words(probabilities, generator)

    return _loop(model, memory, options.samples, options.constraints, pick)


def sample_words(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """A word `(...)` from each distribution `(..., V)`; never one of probability zero.

    `torch.multinomial` draws a number for every word of the vocabulary, this one for every row. On
    other devices than processors running sums are added up in any order, so that one may fall
    from a word to the next, where a search by halves could end at an impossible one.

    >>> sample_words(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.Generator())
    tensor([1, 0])
    """
    if probabilities.device.type != "cpu":
        words = torch.multinomial(probabilities.flatten(0, -2), 1, generator=generator)
        return words.view(probabilities.shape[:-1])
    sums = probabilities.cumsum(-1)
    total = sums[..., -1:]
    points = total * torch.rand(total.shape, generator=generator, dtype=total.dtype)
    # The product may be rounded up to the total, which no running sum is above.
    points = points.minimum(total.nextafter(torch.zeros_like(total)))
    return torch.searchsorted(sums, points, right=True).squeeze(-1)


def _sample_alike(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """A word `(B, K)` from each distribution `(B, K, V)`, by K random numbers for all pictures."""
    points = torch.rand(1, probabilities.shape[1], 1, generator=generator)
    # (A running sum that fell by rounding would let a search by halves end at an impossible word.)
    sums = probabilities.cumsum(-1).cummax(-1).values
    total = sums[..., -1:]
    points = (points.to(sums) * total).minimum(total.nextafter(torch.zeros_like(total)))
    return torch.searchsorted(sums, points, right=True).squeeze(-1)


def truncate(log_weights: Tensor, top_k: int, top_p: float) -> Tensor:
    """Probabilities after keeping the `top_k` likeliest and the nucleus of mass `top_p`.

    >>> truncate(torch.tensor([0.5, 0.3, 0.2]).log(), 2, 1.0)
    tensor([0.6250, 0.3750, 0.0000])
    """
    if top_k and top_k < log_weights.shape[-1]:
        best = log_weights.topk(top_k)
        nothing = torch.full_like(log_weights, float("-inf"))
        log_weights = nothing.scatter(-1, best.indices, best.values)
    probabilities = functional.softmax(log_weights, -1)
    if top_p < 1:
        ordered, order = probabilities.sort(-1, descending=True)
        # A word stays if those before it do not make up the mass yet; so the likeliest always does.
        outside = ordered.cumsum(-1) - ordered >= top_p
        probabilities = probabilities.masked_fill(outside.gather(-1, order.argsort(-1)), 0.0)
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    return probabilities


def _loop(
    model: CaptionModel,
    memory: Memory,
    rows: int,
    constraints: Constraints,
    pick: Callable[[Tensor], Tensor],
) -> Hypotheses:
    pictures = len(next(iter(memory.values())))
    device = next(iter(memory.values())).device
    state = model.start(memory, rows)
    tokens = torch.full((pictures, rows, 1), START, device=device)
    log_probs = torch.zeros(pictures, rows, device=device)
    for t in range(constraints.max_length + 1):
        advance(t, constraints.max_length + 1)
        step = model.step(tokens[:, :, -1], state, memory)
        state = step.state
        allowed = functional.log_softmax(step.logits, -1, dtype=torch.float32)
        constrain_(allowed, tokens, constraints)
        words = pick(allowed)
        log_probs = log_probs + allowed.gather(2, words[..., None]).squeeze(2)
        tokens = torch.cat([tokens, words[..., None]], 2)
        if ((words == END) | (words == PAD)).all():
            break
    return Hypotheses(tokens[..., 1:], log_probs, log_probs)


def _no_required(constraints: Constraints) -> None:
    if constraints.require:
        raise ConfigError("decoding: required words need a beam search")
