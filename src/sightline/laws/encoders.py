"""The laws of image encoders, on pictures of noise."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from sightline.encoders.encoder import Encoder, create_encoder
from sightline.encoders.registry import ENCODERS, EncoderEntry
from sightline.errors import NotApplicableError
from sightline.explain.lrp.mode import LRPMode
from sightline.laws.law import Law, require, require_same, require_shape

WHOLE = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class EncoderCase:
    """An encoder by its name, with two pictures."""

    name: str

    @cached_property
    def entry(self) -> EncoderEntry:
        return ENCODERS.find(self.name)

    @cached_property
    def encoder(self) -> Encoder:
        return create_encoder(self.name)

    def pixels(self, size: int) -> Tensor:
        torch.manual_seed(1)
        return torch.randint(0, 256, (2, size, size, 3), dtype=torch.uint8)

    @cached_property
    def x(self) -> Tensor:
        return self.encoder.normalise(self.pixels(self.entry.size))


def _the_table_tells_the_truth(case: EncoderCase) -> None:
    entry = case.entry
    require(entry.name == case.name, f"its entry calls it '{entry.name}'")
    require(entry.stage in entry.stages, f"stages: there is no '{entry.stage}'")
    for stage in entry.stages:
        for size in (entry.size, entry.size + 37):
            encoder = create_encoder(case.name, stage, size)
            with torch.inference_mode():
                regions = encoder(case.pixels(size), torch.tensor([WHOLE] * 2))
            cells = encoder.grid[0] * encoder.grid[1]
            what = f"regions of {stage} at {size} px (B, L, D)"
            require_shape(regions.vectors, (2, cells, encoder.dim), what)
            require(regions.vectors.isfinite().all(), f"{what}: not finite")


def _a_batch_equals_its_items(case: EncoderCase) -> None:
    with torch.no_grad():
        together = case.encoder.features(case.x)
        for b in range(2):
            alone = case.encoder.features(case.x[b : b + 1])[0]
            scale = 1e-5 * alone.abs().max().clamp(min=1).item()
            require_same(together[b], alone, f"picture {b} in a batch and alone", scale)


def _frozen_and_deterministic(case: EncoderCase) -> None:
    trained = [name for name, p in case.encoder.named_parameters() if p.requires_grad]
    require(not trained, f"not frozen: {', '.join(trained[:5])}")
    with torch.no_grad():
        first, second = (case.encoder.features(case.x) for _ in range(2))
    require_same(first, second, "features of two runs", 0.0)
    require(not torch.allclose(first[0], first[1]), "two pictures have the same features")


def _its_spec_makes_it_again(case: EncoderCase) -> None:
    again = Encoder.from_spec(case.encoder.spec)
    require(again.fingerprint == case.encoder.fingerprint, "another fingerprint")
    with torch.no_grad():
        features, remade = case.encoder.features(case.x), again.features(case.x)
    require_same(features, remade, "features", 0.0)


def _stages_follow_one_another(case: EncoderCase) -> None:
    before: list[torch.nn.Module] = []
    for stage in case.entry.stages:
        parts = case.encoder.network.parts(stage)
        same = all(a is b for a, b in zip(before, parts, strict=False))
        require(same and len(parts) > len(before), f"{stage}: does not go on from the one before")
        before = parts


def _gradients_reach_the_picture(case: EncoderCase) -> None:
    x = case.x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(case.encoder.features(x).square().sum(), x)
    require(gradient.isfinite().all(), "gradient: not finite")
    require((gradient.flatten(1).abs().sum(1) > 0).all(), "no gradient reaches the picture")


def _lrp_accounts_for_all(case: EncoderCase) -> str | None:
    x, mode = case.x.detach().requires_grad_(), LRPMode(2)
    assert mode.absorbed is not None
    try:
        with mode:
            grid = case.encoder.features(x)
        c = torch.ones_like(grid)
        onward, absorbed = torch.autograd.grad(grid, [x, mode.absorbed], c)
    except NotApplicableError as error:
        return f"lrp does not apply ({error})"
    entered = grid.flatten(1).sum(1)
    accounted = (onward * x).flatten(1).sum(1) + absorbed.sum(0)
    scale = 1e-3 * grid.abs().flatten(1).sum(1).max().item()  # (single precision, many sums)
    require_same(accounted.detach(), entered.detach(), "the account of LRP", scale)
    return None


ENCODER_LAWS = [
    Law("grid and width are what its entry says, at every stage", _the_table_tells_the_truth),
    Law("a batch equals its pictures one by one", _a_batch_equals_its_items),
    Law("it is frozen and deterministic", _frozen_and_deterministic),
    Law("its spec makes it again", _its_spec_makes_it_again),
    Law("stages follow one another", _stages_follow_one_another),
    Law("gradients reach the picture", _gradients_reach_the_picture),
    Law("LRP accounts for all, or is refused by name", _lrp_accounts_for_all),
]
