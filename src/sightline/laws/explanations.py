"""The laws of explanation methods; and of captioners, that they can be explained by them."""

from dataclasses import dataclass
from functools import cached_property

import torch

from sightline.encoders.encoder import create_encoder
from sightline.errors import NotApplicableError
from sightline.explain.attribution import Attribution
from sightline.explain.methods import METHODS
from sightline.explain.targets import Targets
from sightline.laws.law import Law, require, require_same, require_shape
from sightline.laws.models import VOCABULARY, ModelCase, cases
from sightline.models.interface import CaptionModel
from sightline.models.registry import create_model
from sightline.regions import Regions

CAPTIONERS = ("soft_attention", "transformer")  # a method is tried on one of either kind


def ask(model: CaptionModel, regions: Regions) -> Targets:
    """Three words of the caption of each of two pictures; of one of them there is a region less."""
    tokens = torch.tensor([[[1, 5, 5, 7]], [[1, 9, 4, 5]]])
    places = torch.tensor([[3, 0, 2], [1, 3, 2]])
    return Targets(model, regions, tokens, places, torch.tensor([[4, 5, 6], [7, 8, 9]]))


def _alone(targets: Targets, b: int) -> Targets:
    picture = slice(b, b + 1)
    return Targets(
        targets.model,
        targets.regions[picture],
        targets.tokens[picture],
        targets.places[picture],
        targets.words[picture],
        targets.encoder,
        None if targets.x is None else targets.x[picture],
    )


def _require_shapes(attribution: Attribution, targets: Targets) -> None:
    pictures, words = targets.places.shape
    regions, given = targets.regions.mask.shape[1], targets.tokens.shape[2]
    require_shape(attribution.total, (pictures, words), "total (B, N)")
    require_shape(attribution.regions, (pictures, words, regions), "regions (B, N, L)")
    require_shape(attribution.words, (pictures, words, given), "words (B, N, T)")
    if attribution.pixels is not None:
        require(targets.x is not None, "pixels: there are none in the question")
        assert targets.x is not None
        require_shape(
            attribution.pixels, (pictures, words, *targets.x.shape[2:]), "pixels (B, N, h, w)"
        )
    for name in ("bias", "epsilon", "encoder"):
        if (absorbed := getattr(attribution, name)) is not None:
            require_shape(absorbed, (pictures, words), f"{name} (B, N)")
    for name, tensor in attribution._asdict().items():
        require(tensor is None or tensor.isfinite().all(), f"{name}: not finite")


def _require_batch_of_items(name: str, targets: Targets, together: Attribution) -> None:
    for b in range(len(targets.places)):
        alone = METHODS.find(name).attribute(_alone(targets, b))
        for part, tensor in together._asdict().items():
            if tensor is not None:
                what = f"{name}: {part} of picture {b} in a batch and alone"
                require_same(tensor[b], getattr(alone, part)[0], what, 1e-7)


def _can_be_explained(case: ModelCase) -> str | None:
    """By every method that applies; one that does not says so by name, and LRP's account closes."""
    targets = ask(case.model, case.regions[:2])
    logits = targets.chosen(case.model(targets.regions, targets.tokens).logits)
    skipped = []
    for name, method in METHODS.builtin.items():
        try:
            attribution = method.attribute(targets)
        except NotApplicableError as error:
            skipped.append(f"{name} does not apply ({error})")
            continue
        _require_shapes(attribution, targets)
        require_same(attribution.total, logits, f"{name}: total", 1e-7)
        _require_batch_of_items(name, targets, attribution)
        if attribution.bias is not None and attribution.epsilon is not None:
            accounted = (
                attribution.regions.sum(-1)
                + attribution.words.sum(-1)
                + attribution.bias
                + attribution.epsilon
            )
            require_same(accounted, attribution.total, f"{name}: the account", 1e-6)
    require(len(skipped) < len(METHODS.builtin), "; ".join(skipped))
    return "; ".join(skipped) or None


EXPLAINABLE = Law("it can be explained", _can_be_explained)


@dataclass(frozen=True)
class MethodCase:
    """A method by its name, with the captioners it is tried on."""

    name: str

    @cached_property
    def targets(self) -> list[Targets]:
        """Of the captioners that it applies to: a method may be for one kind alone."""
        models = [cases(captioner)[0] for captioner in CAPTIONERS]
        asked = [ask(case.model, case.regions[:2]) for case in models]
        applicable = [targets for targets in asked if self._applies(targets)]
        require(len(applicable) > 0, f"it explains none of {', '.join(CAPTIONERS)}")
        return applicable

    def _applies(self, targets: Targets) -> bool:
        try:
            self.explain(targets)
        except NotApplicableError:
            return False
        return True

    def explain(self, targets: Targets) -> Attribution:
        return METHODS.find(self.name).attribute(targets)


def _method_shapes(case: MethodCase) -> None:
    for targets in case.targets:
        attribution = case.explain(targets)
        _require_shapes(attribution, targets)
        logits = targets.model(targets.regions, targets.tokens).logits
        require_same(attribution.total, targets.chosen(logits), "total: is to be the logit", 1e-7)


def _method_batch(case: MethodCase) -> None:
    for targets in case.targets:
        _require_batch_of_items(case.name, targets, case.explain(targets))


def _method_absent(case: MethodCase) -> None:
    for targets in case.targets:
        mask = targets.regions.mask.clone()
        mask[0, 2] = False
        regions = Regions(targets.regions.vectors, mask, targets.regions.boxes)
        relevance = case.explain(ask(targets.model, regions)).regions
        require((relevance.transpose(1, 2)[~mask] == 0).all(), "regions: more than nothing")


def _method_later(case: MethodCase) -> None:
    for targets in case.targets:
        attribution = case.explain(targets)
        later = torch.arange(targets.tokens.shape[2]) > targets.places[..., None]
        require((attribution.words[later] == 0).all(), "words: more than nothing for a later word")
        tokens = targets.tokens.clone()
        tokens[..., -1] = (tokens[..., -1] - 3) % (VOCABULARY - 4) + 4
        changed = Targets(targets.model, targets.regions, tokens, targets.places, targets.words)
        before = targets.places < targets.tokens.shape[2] - 1
        after_change = case.explain(changed)
        require_same(attribution.regions[before], after_change.regions[before], "regions", 1e-9)
        require_same(attribution.words[before], after_change.words[before], "words", 1e-9)


def _method_pixels(case: MethodCase) -> str | None:
    encoder = create_encoder("efficientnet_lite0", stage="stage4", size=64)
    torch.manual_seed(1)
    pixels = torch.randint(0, 256, (2, 64, 64, 3), dtype=torch.uint8)
    regions = encoder(pixels, torch.tensor([[0.0, 0.0, 1.0, 1.0]] * 2))
    model = create_model("soft_attention", VOCABULARY, encoder.dim, {"state_width": 7}).eval()
    plain = ask(model, regions)
    question = (plain.tokens, plain.places, plain.words)
    targets = Targets(model, regions, *question, encoder, encoder.normalise(pixels))
    try:
        attribution = case.explain(targets)
    except NotApplicableError as error:
        return str(error)
    _require_shapes(attribution, targets)
    return None if attribution.pixels is not None else "it ends at the regions"


METHOD_LAWS = [
    Law("shapes and the logit are those of the interface", _method_shapes),
    Law("a batch equals its pictures one by one", _method_batch),
    Law("regions that are not there have nothing", _method_absent),
    Law("later words have nothing, and change nothing", _method_later),
    Law("a picture with its encoder is explained", _method_pixels),
]
