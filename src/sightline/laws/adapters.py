"""The laws of adapted captioners: what must hold of a family before its words are explained."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sightline.adapters.encoder import AdaptedEncoder
from sightline.adapters.families import FAMILIES
from sightline.adapters.model import AdaptedModel
from sightline.adapters.tiny import SIDE, tiny
from sightline.adapters.vocabulary import PieceVocabulary
from sightline.adapters.wrap import Parts, WhiteBox, see_into
from sightline.errors import NotApplicableError
from sightline.explain.gradients import gradient_input
from sightline.explain.lrp.method import lrp
from sightline.explain.targets import Targets
from sightline.laws.law import Law, Verdict, judge, require, require_same
from sightline.models.interface import CaptionModel, Unrolled
from sightline.regions import Regions
from sightline.text.vocabulary import SPECIAL, START

SAID = "a dog barks"  # of which the last word has several pieces in most vocabularies
FORWARD, ACCOUNT, LOOP = 1e-5, 1e-6, 1e-5


@dataclass(frozen=True, eq=False)
class AdapterCase:
    """An adapted captioner in double precision, with two pictures of noise and a caption."""

    encoder: AdaptedEncoder
    model: AdaptedModel
    vocabulary: PieceVocabulary

    @classmethod
    def of(cls, parts: Parts) -> "AdapterCase":
        encoder, model, vocabulary = parts
        if not isinstance(encoder, AdaptedEncoder) or not isinstance(model, AdaptedModel):
            raise NotApplicableError(f"no law is of black boxes: {model.black_box}")
        return cls(encoder.double(), model.double(), vocabulary)

    @cached_property
    def x(self) -> Tensor:
        side = self.encoder.preprocessing.size
        noise = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(1))
        return noise.double().to(self.encoder.mean.device)

    @cached_property
    def regions(self) -> Regions:
        with torch.no_grad():
            vectors = self.encoder.vectors(self.x)
        mask = torch.ones_like(vectors[..., 0], dtype=torch.bool)
        return Regions(vectors, mask, torch.zeros_like(vectors[..., :4]))

    @cached_property
    def ids(self) -> list[int]:
        return self.vocabulary.encode(SAID)

    @cached_property
    def tokens(self) -> Tensor:
        return torch.tensor([[[START, *self.ids]]] * 2, device=self.x.device)

    @torch.no_grad()
    def run(self, regions: Regions | None = None, tokens: Tensor | None = None) -> Unrolled:
        given = self.tokens if tokens is None else tokens
        unrolled: Unrolled = self.model(regions or self.regions, given)
        return unrolled

    @cached_property
    def targets(self) -> Targets:
        count = len(self.ids)
        return Targets(
            self.model,
            self.regions,
            self.tokens[..., :-1],
            torch.arange(count, device=self.x.device).expand(2, -1),
            self.tokens[:, 0, 1:],
        )


ADAPTER_LAWS: list[Law[AdapterCase]] = []
Check = Callable[[AdapterCase], str | None]


def law(sentence: str) -> Callable[[Check], Check]:
    """Adds what it decorates to the laws, in the order of this file."""

    def add(check: Check) -> Check:
        ADAPTER_LAWS.append(Law(sentence, check))
        return check

    return add


@torch.no_grad()
def forward_difference(case: AdapterCase) -> float:
    """How far logits are from those of the model's own pass, from the pixels on."""
    model, family = case.model, case.model.family
    pieces = [piece - len(SPECIAL) for piece in case.ids]
    ids = torch.tensor([[*model.starts[START].tolist(), *pieces]] * 2, device=case.x.device)
    inputs = model.inputs(ids) | family.pixels(model.model, case.x)
    logits = model.model(**inputs).logits[:, -case.tokens.shape[2] :]
    said = ~model.banned[len(SPECIAL) :]
    difference = logits - case.run().logits[:, 0, :, len(SPECIAL) :]
    return float(difference[..., said].abs().max())


@law("the captioner's own forward pass is unchanged")
def forward_is_unchanged(case: AdapterCase) -> None:
    difference = forward_difference(case)
    require(difference <= FORWARD, f"logits: differ by {difference:.2g}")


def account(case: AdapterCase) -> float:
    """How much of a word's logit LRP does not account for, at most, of all its parts."""
    attribution = lrp(case.targets)
    assert attribution.bias is not None
    assert attribution.epsilon is not None
    parts = (attribution.regions, attribution.words)
    total = sum((part.sum(-1) for part in parts), attribution.bias + attribution.epsilon)
    return float((attribution.total - total).abs().max())


@law("LRP accounts for every logit")
def account_is_closed(case: AdapterCase) -> None:
    gap = account(case)
    require(gap <= ACCOUNT, f"{gap:.2g} of a logit is not accounted for")


@law("gradients of image tokens are those of autograd, without our modes")
def gradients_are_true(case: AdapterCase) -> None:
    vectors = case.regions.vectors.clone().requires_grad_()
    regions = Regions(vectors, case.regions.mask, case.regions.boxes)
    with torch.enable_grad():
        logits = case.model(regions, case.targets.tokens).logits
        total = case.targets.chosen(logits)[:, -1].sum()
    (gradient,) = torch.autograd.grad(total, vectors)
    ours = gradient_input(case.targets).regions[:, -1]
    require_same(ours, (gradient * vectors).sum(-1).detach(), "gradient x input", 1e-6)


@law("the teacher-forced pass equals the loop of step")
@torch.no_grad()
def pass_equals_loop(case: AdapterCase) -> None:
    loop = CaptionModel.unroll(case.model, case.tokens, case.model.encode(case.regions))
    together = case.run()
    require_same(together.logits, loop.logits, "logits of pass and loop", LOOP)
    require_same(together.attention, loop.attention, "attention of pass and loop", LOOP)


@law("a batch equals its pictures one by one")
def batch_equals_items(case: AdapterCase) -> None:
    together = case.run()
    for i in range(2):
        alone = case.run(case.regions[[i]], case.tokens[[i]])
        require_same(together.logits[[i]], alone.logits, f"logits of picture {i}", LOOP)


@law("several captions of a picture do not know of each other")
def rows_are_apart(case: AdapterCase) -> None:
    both = torch.cat([case.tokens, case.tokens.flip(2)], 1)
    both[..., 0] = START
    together = case.run(None, both)
    for k in range(2):
        alone = case.run(None, both[:, k : k + 1])
        require_same(together.logits[:, k : k + 1], alone.logits, f"logits of row {k}", LOOP)


@law("what a hidden region held changes nothing, and what a visible one holds does")
def hidden_regions(case: AdapterCase) -> None:
    mask = case.regions.mask.clone()
    mask[:, 1] = False
    other = case.regions.vectors.clone()
    other[:, 1] = 100.0
    hidden, changed = (
        case.run(Regions(vectors, mask, case.regions.boxes)).logits
        for vectors in (case.regions.vectors, other)
    )
    require_same(hidden, changed, "logits", LOOP)
    require((hidden - case.run().logits).abs().max() > 0, "hiding a region changes no logit")


@law("attention is a distribution over the image tokens")
def attention_is_a_distribution(case: AdapterCase) -> str | None:
    attention = case.run().attention
    require_same(attention.sum(-1), torch.ones_like(attention[..., 0]), "sum of attention", 1e-6)
    require((attention >= 0).all(), "attention: below zero")
    return None if attention.std() > 0 else "it reports no attention: every token has the same"


@law("words of pieces: every piece is of one word, and their texts make up the caption")
def pieces_make_words(case: AdapterCase) -> None:
    spans = case.vocabulary.spans(case.ids)
    covered = [n for span in spans for n in range(span.start, span.stop)]
    require(covered == list(range(len(case.ids))), f"pieces {covered} of {len(case.ids)}")
    require([span.text for span in spans] == SAID.split(), f"words: {spans}")
    require(case.vocabulary.decode(case.ids).lower() == SAID, case.vocabulary.decode(case.ids))


@law("probabilities are those of the pieces that can be said")
def probabilities(case: AdapterCase) -> None:
    log_probs = functional.log_softmax(case.run().logits, -1)
    never = log_probs[..., case.model.banned].exp().max()
    require(never == 0, f"what is never said has the probability {float(never):.2g}")


@law("relevance goes on to the pixels, if it is asked to")
def relevance_of_pixels(case: AdapterCase) -> str | None:
    targets = case.targets
    on = Targets(
        *(targets.model, targets.regions, targets.tokens, targets.places, targets.words),
        case.encoder,
        case.x,
    )
    try:
        pixels = lrp(on).pixels
    except NotApplicableError as error:
        return f"it ends at the image tokens: {error}"
    assert pixels is not None
    require(pixels.isfinite().all() and pixels.abs().max() > 0, "pixels: no relevance arrives")
    return None


def check_adapter(subject: str, parts: Parts) -> list[Verdict]:
    """Run the laws on an adapted captioner; it computes in double precision from then on."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # masks that are made on the way are of this type
    try:
        case = AdapterCase.of(parts)
        return judge("adapter", subject, ADAPTER_LAWS, lambda: case)
    finally:
        torch.set_default_dtype(before)


def tiny_parts(model_type: str, **options: Any) -> WhiteBox:
    """A tiny captioner of a family, adapted."""
    size = SIDE if FAMILIES[model_type].size else None
    return see_into(*tiny(model_type, **options), size=size)
