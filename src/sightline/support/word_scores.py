"""The scores of a word: each is higher for words that the picture supports better.

All are higher for a word that the picture supports better, none depends on later words, and each
exists for every captioner (but for the gate, which is where there is one). They cost one LRP pass
to the regions and three teacher-forced passes, for all words of all captions at once, and the
captions that are sampled for `agreement`. A black box has no relevance and no attention: what a
word rests on is found by hiding one region after the other. (`detected` and `frequency` come from
`word_detector`.)
"""

import torch
from torch import Tensor
from torch.nn import functional

from sightline.explain.lrp.method import lrp
from sightline.explain.occlusion import occlusion
from sightline.explain.targets import Targets
from sightline.models.interface import Unrolled
from sightline.regions import Regions

HIDDEN = 0.25  # of the regions: those that a word rests on most, by LRP

MEANING = {
    "relevance_mean": "mean relevance of the regions (LRP)",
    "relevance_max": "highest relevance of a region (LRP)",
    "relevance_sign": "share of the regions' relevance that is positive (LRP)",
    "attention_max": "highest attention of a region",
    "gate": "how far the gate lets the picture in (1 - β)",
    "occlusion": "probability lost when its most relevant regions are hidden",
    "blank": "probability lost when the picture is replaced by a blank",
    "other_picture": "probability lost when it is replaced by other pictures",
    "log_probability": "log-probability of the word",
    "agreement": "share of captions sampled from the captioner that say the word",
    "detected": "evidence of a detector of words that reads no caption, in log-odds",
    "frequency": "how common the word is: log-odds among training pictures, a prior, not evidence",
}


_OF_INSIDE = ("relevance_mean", "relevance_max", "relevance_sign", "attention_max")


def word_scores(
    targets: Targets, reference_regions: Regions, owners: Tensor | None = None
) -> dict[str, Tensor]:
    """The scores `(B, N)` of the words asked for; `MEANING` says what each is.

    `reference_regions` are what the picture is replaced by: a blank first, then other pictures.
    Where the targets are pieces of words, `owners` `(B, N)` are the numbers of their words, and
    the scores are those of words: as likely as all their pieces together, as relevant as their sum.

    >>> from sightline.models.registry import create_model
    >>> model = create_model("transformer", 6, 5, {"width": 4, "heads": 2}).eval()
    >>> regions = Regions(torch.ones(1, 3, 5), torch.ones(1, 3) > 0, torch.zeros(1, 3, 4))
    >>> said = torch.tensor([[[1, 4]]]), torch.tensor([[1]]), torch.tensor([[5]])
    >>> scores = word_scores(Targets(model, regions, *said), regions[[0, 0]])
    >>> abs(scores["blank"].item()) < 1e-5  # a blank that is the picture itself
    True
    """
    if owners is None:
        owners = torch.arange(targets.places.shape[1], device=targets.places.device)
        owners = owners.expand_as(targets.places)
    opaque = bool(targets.model.black_box)  # then what rests on it is found by hiding it
    relevance = _sum((occlusion if opaque else lrp)(targets).regions, owners)
    visible = targets.regions.mask[:, None]
    with torch.no_grad():
        unrolled: Unrolled = targets.model(targets.regions, targets.tokens)
        log_probs = _sum(_log_probs(unrolled.logits.transpose(0, 1), targets)[0], owners)
        replaced = _log_probs(_logits_of(targets, reference_regions), targets)
        replaced = torch.stack([_sum(each, owners) for each in replaced]).exp()
        attention = unrolled.attention[:, 0].gather(1, _along(targets.places, unrolled.attention))
        of_piece = relevance.gather(1, _along(owners, relevance))  # each has its word's
        # Probabilities, not their logarithms: what a picture makes of an unlikely word says little.
        scores = {
            "relevance_mean": relevance.sum(-1) / visible.sum(-1),
            "relevance_max": relevance.masked_fill(~visible, float("-inf")).amax(-1),
            "relevance_sign": relevance.clamp(min=0).sum(-1)
            / relevance.abs().sum(-1).clamp(min=1e-12),
            "attention_max": _mean(attention, owners).amax(-1),
            "occlusion": log_probs.exp() - _sum(_occluded(targets, of_piece), owners).exp(),
            "blank": log_probs.exp() - replaced[0],
            "other_picture": log_probs.exp() - replaced[1:].mean(0),
            "log_probability": log_probs,
        }
        if opaque:
            scores = {name: score for name, score in scores.items() if name not in _OF_INSIDE}
        gate = _gate(unrolled.signals)
        if gate is not None:
            scores["gate"] = _mean(gate[:, 0].gather(1, targets.places), owners)
    return {name: scores[name] for name in MEANING if name in scores}


def _sum(values: Tensor, owners: Tensor) -> Tensor:
    """Values `(B, N, ...)` of pieces, added up for the words that they belong to."""
    words = int(owners.max()) + 1
    index = owners.view(*owners.shape, *(1,) * (values.dim() - 2)).expand_as(values)
    shape = (len(values), words, *values.shape[2:])
    return values.new_zeros(shape).scatter_add(1, index, values)


def _mean(values: Tensor, owners: Tensor) -> Tensor:
    pieces = _sum(torch.ones_like(values), owners)
    return _sum(values, owners) / pieces.clamp(min=1)


def _gate(signals: dict[str, Tensor]) -> Tensor | None:
    """How much of the picture was let in; the β of papers 1 and 4 mean opposite things."""
    if "sentinel" in signals:
        return 1 - signals["sentinel"]
    return signals.get("beta")


def _logits_of(targets: Targets, reference_regions: Regions) -> Tensor:
    """Logits `(P, B, T, V)` of the captions, had their picture been each of P others."""
    captions = targets.tokens.transpose(0, 1).expand(len(reference_regions), -1, -1)
    unrolled: Unrolled = targets.model(reference_regions, captions)
    return unrolled.logits


def _occluded(targets: Targets, relevance: Tensor) -> Tensor:
    """The words' log-probabilities `(B, N)` without the regions that each rests on most."""
    pictures, words = targets.places.shape
    regions = targets.regions
    visible = regions.mask[:, None]
    count = visible.sum(-1, keepdim=True)
    # At least one, and never all of them: nothing can be said of no picture at all.
    hidden = (count * HIDDEN).long().clamp(min=1).minimum(count - 1)
    ranks = relevance.masked_fill(~visible, float("-inf")).argsort(-1, descending=True).argsort(-1)
    kept = Regions(
        regions.vectors.repeat_interleave(words, 0),
        (visible & (ranks >= hidden)).flatten(0, 1),
        regions.boxes.repeat_interleave(words, 0),
    )
    logits = targets.model(kept, targets.tokens.repeat_interleave(words, 0)).logits[:, 0]
    rows = torch.arange(pictures * words, device=logits.device)
    at_place = logits[rows, targets.places.flatten()]
    return _chosen(at_place.unflatten(0, (pictures, words)), targets.words)


def _log_probs(logits: Tensor, targets: Targets) -> Tensor:
    """The log-probabilities `(P, B, N)` of the words asked for, of `(P, B, T, V)`."""
    places = _along(targets.places, logits).expand(len(logits), -1, -1, -1)
    return _chosen(logits.gather(2, places), targets.words.expand(len(logits), -1, -1))


def _chosen(logits: Tensor, words: Tensor) -> Tensor:
    return functional.log_softmax(logits, -1).gather(-1, words[..., None]).squeeze(-1)


def _along(places: Tensor, values: Tensor) -> Tensor:
    """Places `(B, N)` as an index `(B, N, n)` into values `(..., T, n)`."""
    return places[..., None].expand(-1, -1, values.shape[-1])
