"""LRP-inference fine-tuning: predictions weighted by their support in the picture (paper 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from sightline.config import require_at_least
from sightline.data.dataset import CaptionedImage
from sightline.decoding.inference import inference
from sightline.errors import ConfigError
from sightline.explain.backward import backward_to_regions, word_relevance
from sightline.explain.lrp.mode import LRPMode
from sightline.explain.targets import Targets
from sightline.models.interface import CaptionModel, Unrolled
from sightline.regions import Regions
from sightline.text.stop_words import is_content
from sightline.text.vocabulary import PAD, Vocabulary
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.cross_entropy import negative_log_likelihood
from sightline.training.objectives.objective import Objective, Term

CAPTIONS = 64  # explained at a time: each has its picture's regions, and as many again per word


@dataclass(frozen=True)
class LRPInferenceOptions:
    """What is weighed, and how much that counts."""

    # The logit of the word, by the relevance of the picture (eq. 10-11); or what the last layer is
    # given, by its own relevance, which costs next to nothing (as in the authors' later code); or
    # the logit, but against the relevance (see `counterweights`), which is not in the paper.
    form: Literal["logit", "feature", "counterweight"] = "logit"
    likelihood: float = 0.5  # λ of eq. 12: the share of plain cross-entropy
    strength: float = 2.0  # of counterweights, which are 1 at most

    def __post_init__(self) -> None:
        require_at_least(0, "objective", likelihood=self.likelihood, strength=self.strength)
        if self.likelihood > 1:
            raise ConfigError("objective.likelihood: must be at most 1")


class LRPInference(Objective):
    """L = λ CE(p) + (1 - λ) CE(p̂) (eq. 12), p̂ being weighed by relevance, which is a constant.

    At every place of a caption the captioner's own first choice is explained, unless it is a stop
    word. LRPMode is that of a pass without dropout. Weights are there in training only, and a
    captioner makes up for them, which the form `counterweight` takes into account.
    """

    def __init__(self, options: LRPInferenceOptions) -> None:
        self.options = options
        self.is_content: Tensor | None = None  # (V,)

    def prepare(self, images: Sequence[CaptionedImage], vocabulary: Vocabulary) -> None:
        self.is_content = torch.tensor([is_content(word) for word in vocabulary.words])

    def terms(self, model: nn.Module, batch: CaptionBatch, epoch: int) -> dict[str, Term]:
        assert self.is_content is not None
        with LastLinear() as last:
            unrolled: Unrolled = model(batch.regions, batch.inputs)
        words = unrolled.logits.detach().argmax(-1)
        explained = self.is_content.to(words.device)[words] & (batch.targets != PAD)
        if self.options.form == "logit":
            support = picture_support(model, batch.regions, batch.inputs, words, explained)
            logits = weigh_logits(unrolled.logits, words, support)
        elif self.options.form == "counterweight":
            support = picture_support(
                model, batch.regions, batch.inputs, words, explained, of="total"
            )
            weights = counterweights(support, explained, self.options.strength)
            logits = weigh_logits(unrolled.logits, words, weights)
        else:
            x = last.x.to(last.weight.dtype)  # (mixed precision may have halved it)
            relevance = feature_evidence(x, last.weight, words, explained)
            logits = functional.linear(x * (1 + relevance), last.weight, last.bias)
            support = relevance.mean(-1)
        inferred = negative_log_likelihood(unrolled._replace(logits=logits), batch).sum()
        nll = negative_log_likelihood(unrolled, batch).sum()
        # Means over explained words, as shares of all words, which is what they are divided by.
        share = batch.tokens / explained.sum().clamp(min=1)
        return {
            "nll": Term(nll, "word", self.options.likelihood),
            "inferred": Term(inferred, "word", 1 - self.options.likelihood),
            "explained": Term(batch.weight * explained.sum(), "word", 0.0),
            "support": Term(share * support.sum(), "word", 0.0),
            "opposed": Term(share * (support < 0).sum(), "word", 0.0),
        }


def weigh_logits(logits: Tensor, words: Tensor, support: Tensor) -> Tensor:
    """p̂ = p + mean(E) |p| for one word of each place, other logits `(..., V)` as they are.

    Of a logit above zero that is the paper's (1 + mean(E)) p (eq. 10-11). That product would raise
    a negative logit for lack of support; so it is (1 - mean(E)) p there, and less support is less
    probability everywhere.

    >>> logits, words = torch.tensor([[2.0, -2.0], [2.0, -2.0]]), torch.tensor([0, 1])
    >>> weigh_logits(logits, words, torch.tensor([-0.5, -0.5])).tolist()
    [[1.0, -2.0], [2.0, -3.0]]
    """
    chosen = logits.gather(-1, words[..., None])
    change = support[..., None].to(logits.dtype) * chosen.abs()
    return logits.scatter_add(-1, words[..., None], change)


def counterweights(support: Tensor, explained: Tensor, strength: float) -> Tensor:
    """What `weigh_logits` is to take for support: more where there is less than the mean of it.

    What training adds to a logit, a captioner learns to leave out, and the other way round. So the
    words with the most support are made to be learnt better than well, while those that the words
    before suggest, rather than the picture, are said already and need not be learnt: without these
    weights, which is how captions are made, less support is less probability. (The mean is that of
    the batch, and where processes share one, of the part that each has.)

    >>> support, explained = torch.tensor([0.5, 0.25, 0.0]), torch.tensor([True, True, False])
    >>> counterweights(support, explained, 4.0).tolist()
    [-0.5, 0.5, 0.0]
    """
    beyond = support - support[explained].mean()
    return (-strength * beyond).clamp(-1, 1).masked_fill(~explained, 0.0)


def picture_support(
    model: nn.Module,
    regions: Regions,
    inputs: Tensor,
    words: Tensor,
    explained: Tensor,
    of: Literal["largest", "total"] = "largest",
) -> Tensor:
    """Support `(B, K, T)` for the words that are to be explained, from -1 to 1; 0 for others.

    That is mean(E) of equation 11, E being the relevance of the regions over its largest absolute
    value; or, of the `total` of absolute relevance of regions and words, the part that speaks for
    the word from the regions less the part that speaks against it from there. The first asks how
    much of the picture speaks for a word, the second how much of what speaks does so from the
    picture.
    """
    support = regions.vectors.new_zeros(words.shape)
    rows = explained.any(-1).nonzero()
    with inference(model) as captioner:
        for part in torch.split(rows, CAPTIONS) if len(rows) else ():
            b, k = part.unbind(1)
            caption_rows = inputs[b, k], words[b, k], explained[b, k]
            support[b, k] = _caption_support(captioner, regions[b], *caption_rows, of)
    return support


def _caption_support(
    captioner: CaptionModel,
    regions: Regions,
    inputs: Tensor,
    words: Tensor,
    explained: Tensor,
    of: Literal["largest", "total"],
) -> Tensor:
    """The same for captions `(n, T)`, each with a picture of its own: in one pass."""
    most = int(explained.sum(-1).max())
    places = explained.int().sort(dim=-1, descending=True, stable=True).indices[:, :most]
    targets = Targets(captioner, regions, inputs[:, None], places, words.gather(1, places))
    vectors = regions.vectors
    mode = LRPMode(len(vectors), captioner.lrp_epsilon, vectors.dtype, vectors.device)
    multipliers = backward_to_regions(targets, mode)
    relevance = (multipliers.regions * vectors).sum(-1)  # (N, n, L)
    if of == "largest":
        whole = _largest(relevance).squeeze(-1) * regions.mask.sum(-1)
    else:
        both = torch.cat([relevance, word_relevance(multipliers).transpose(0, 1)], -1)
        whole = both.abs().sum(-1).clamp(min=torch.finfo(both.dtype).tiny)
    support = relevance.sum(-1) / whole
    # Captions with fewer words to explain than others are asked for some more.
    support_by_place = torch.zeros_like(words, dtype=support.dtype).scatter(1, places, support.T)
    return support_by_place.masked_fill(~explained, 0.0)


def feature_evidence(x: Tensor, weight: Tensor, words: Tensor, explained: Tensor) -> Tensor:
    """E of the numbers `x` `(..., d)` that the last layer makes each word's logit of.

    By the ε-rule number j has x_j w_j of the logit, times what is the same for all of them, and
    goes when the largest becomes one. Nothing for words that are not to be explained.

    >>> x, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 0.0], [3.0, -3.0]])
    >>> feature_evidence(x, weight, torch.tensor([1]), torch.tensor([True])).tolist()
    [[0.5, -1.0]]
    """
    relevance = x.detach() * weight.detach()[words]
    return (relevance / _largest(relevance)).masked_fill(~explained[..., None], 0.0)


def _largest(relevance: Tensor) -> Tensor:
    """Of the last axis, and never zero."""
    smallest = torch.finfo(relevance.dtype).tiny
    return relevance.abs().amax(-1, keepdim=True).clamp(min=smallest)


class LastLinear(TorchFunctionMode):
    """Notes the last linear map under it: in any captioner, the one that makes the logits.

    >>> with LastLinear() as last:
    ...     y = nn.Linear(2, 3)(torch.ones(1, 2))
    >>> last.x.shape, last.weight.shape
    (torch.Size([1, 2]), torch.Size([3, 2]))
    """

    x: Tensor
    weight: Tensor
    bias: Tensor | None

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(function, "__name__", "") == "linear":
            self.x, self.weight, self.bias = args
        return function(*args, **(kwargs or {}))
