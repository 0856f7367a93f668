"""The laws of captioners, on small ones in double precision."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from sightline.laws.law import Law, require, require_same, require_shape
from sightline.models.interface import CaptionModel, Unrolled, select_pictures, select_rows
from sightline.models.registry import MODELS, create_model
from sightline.regions import Regions
from sightline.text.vocabulary import END, PAD, START

VOCABULARY, REGION_DIM = 11, 6
ALL = slice(None)


@dataclass(frozen=True)
class ModelCase:
    """A captioner by its name and options, with pictures and captions to try it on."""

    name: str
    options: dict[str, Any]

    def create(self, seed: int = 0) -> CaptionModel:
        torch.manual_seed(seed)
        model = create_model(self.name, VOCABULARY, REGION_DIM, self.options).double().eval()
        with torch.no_grad():  # far enough from nothing that every part tells
            for parameter in model.parameters():
                parameter.mul_(2)
        return model

    @cached_property
    def model(self) -> CaptionModel:
        return self.create()

    @cached_property
    def regions(self) -> Regions:
        """Three pictures of five regions, of which some are not there."""
        torch.manual_seed(1)
        mask = torch.ones(3, 5, dtype=torch.bool)
        mask[1, 3:] = False
        mask[2, 0] = False
        corner = torch.rand(3, 5, 2) / 2
        boxes = torch.cat([corner, corner + torch.rand(3, 5, 2) / 2], -1)
        return Regions(torch.randn(3, 5, REGION_DIM).double(), mask, boxes.double())

    @cached_property
    def tokens(self) -> Tensor:
        """Two captions of each picture, of one to six words."""
        torch.manual_seed(2)
        tokens = torch.randint(4, VOCABULARY, (3, 2, 8))
        tokens[..., 0] = START
        for row, length in zip(tokens.flatten(0, 1), (1, 2, 3, 4, 5, 6), strict=True):
            row[length + 1] = END
            row[length + 2 :] = PAD
        return tokens

    def run(self) -> Unrolled:
        unrolled: Unrolled = self.model(self.regions, self.tokens)
        return unrolled


MODEL_LAWS: list[Law[ModelCase]] = []


def cases(name: str) -> list[ModelCase]:
    """A captioner in every variant that its entry names."""
    return [ModelCase(name, options) for options in MODELS.find(name).tiny]


Check = Callable[[ModelCase], str | None]


def law(sentence: str) -> Callable[[Check], Check]:
    """Adds what it decorates to the laws, in the order of this file."""

    def add(check: Check) -> Check:
        MODEL_LAWS.append(Law(sentence, check))
        return check

    return add


def _require_same(actual: Unrolled, expected: Unrolled, what: str) -> None:
    require_same(actual.logits, expected.logits, f"{what}: logits")
    require_same(actual.attention, expected.attention, f"{what}: attention")
    names, expected_names = sorted(actual.signals), sorted(expected.signals)
    require(names == expected_names, f"{what}: signals {names} and {expected_names}")
    for name, signal in actual.signals.items():
        require_same(signal, expected.signals[name], f"{what}: the signal {name}")


def _part(unrolled: Unrolled, *index: slice) -> Unrolled:
    """Some pictures, rows and words of an outcome."""
    signals = {name: signal[index] for name, signal in unrolled.signals.items()}
    return Unrolled(unrolled.logits[index], unrolled.attention[index], signals)


@law("shapes are those of the interface")
def shapes(case: ModelCase) -> None:
    unrolled = case.run()
    require_shape(unrolled.logits, (3, 2, 8, VOCABULARY), "logits (B, K, T, V)")
    require_shape(unrolled.attention, (3, 2, 8, 5), "attention (B, K, T, L)")
    for name, signal in unrolled.signals.items():
        require_shape(signal, (3, 2, 8), f"the signal {name} (B, K, T)")
    memory = case.model.encode(case.regions)
    for name, tensor in memory.items():
        require(len(tensor) == 3, f"memory '{name}': its first axis is not the pictures")
    for name, tensor in case.model.start(memory, 2).items():
        require(tensor.shape[:2] == (3, 2), f"state '{name}': its first axes are not (B, K)")


@law("the teacher-forced pass equals the loop of step")
def pass_equals_loop(case: ModelCase) -> None:
    loop = CaptionModel.unroll(case.model, case.tokens, case.model.encode(case.regions))
    _require_same(case.run(), loop, "pass and loop")


@law("a batch equals its pictures one by one")
def batch_equals_items(case: ModelCase) -> None:
    together = case.run()
    for i in range(3):
        picture = slice(i, i + 1)
        alone = case.model(case.regions[picture], case.tokens[picture])
        _require_same(_part(together, picture), alone, f"picture {i} in a batch and alone")


@law("captions of one picture do not know of each other")
def rows_are_apart(case: ModelCase) -> None:
    together = case.run()
    for k in range(2):
        row = (ALL, slice(k, k + 1))
        alone = case.model(case.regions, case.tokens[row])
        _require_same(_part(together, *row), alone, f"caption {k} with another and alone")


@law("what follows the end changes nothing before it")
def padding_of_words(case: ModelCase) -> None:
    whole = case.run()
    for picture, row, end in (case.tokens == END).nonzero().tolist():
        here = (slice(picture, picture + 1), slice(row, row + 1))
        cut = case.tokens[here][..., : end + 1]
        longer = torch.cat([cut, torch.full((1, 1, 9), 5)], -1)
        until_end = _part(whole, *here, slice(0, end + 1))
        _require_same(until_end, case.model(case.regions[here[0]], cut), "cut at the end")
        padded = case.model(case.regions[here[0]], longer)
        _require_same(until_end, _part(padded, ALL, ALL, slice(0, end + 1)), "longer")


@law("regions that are not there change nothing")
def padding_of_regions(case: ModelCase) -> None:
    garbage = torch.full((3, 2, REGION_DIM), 1e3).double()
    wider = Regions(
        torch.cat([garbage, case.regions.vectors, -garbage], 1),
        functional.pad(case.regions.mask, (2, 2)),
        functional.pad(case.regions.boxes, (0, 0, 2, 2)),
    )
    padded = case.model(wider, case.tokens)
    outside = padded.attention[..., [0, 1, -2, -1]]
    require((outside == 0).all(), "attention: more than nothing for a region that is not there")
    inside = padded._replace(attention=padded.attention[..., 2:-2])
    _require_same(case.run(), inside, "with masked regions and without")


@law("attention is a distribution over the regions that are there")
def attention_is_a_distribution(case: ModelCase) -> None:
    attention = case.run().attention
    require_same(attention.sum(-1), torch.ones(3, 2, 8).double(), "sum of attention", 1e-7)
    require((attention >= 0).all(), "attention: below zero")
    absent = attention.transpose(1, 3)[~case.regions.mask]
    require((absent == 0).all(), "attention: more than nothing for a region that is not there")


@law("the picture and every previous word matter, and no later one")
def everything_matters(case: ModelCase) -> None:
    logits = case.run().logits
    regions = case.regions
    flipped = Regions(regions.vectors.flip(0), regions.mask, regions.boxes)
    change = (case.model(flipped, case.tokens).logits[[0, 2]] - logits[[0, 2]]).abs().amax(-1)
    require(change.min() > 1e-6, "another picture changes no logit")
    changed = case.tokens.clone()
    changed[:, :, 1] = (case.tokens[:, :, 1] - 4 + 1) % (VOCABULARY - 4) + 4
    difference = (case.model(regions, changed).logits - logits).abs().amax(-1)
    require((difference[:, :, 0] < 1e-10).all(), "a word changes the logits before it")
    require((difference[:, :, 1] > 1e-10).all(), "a word does not change the next logits")
    # (Attention may all but forget a word for a while, and look back at it.)
    require((difference[:, :, 2:].amax(2) > 1e-10).all(), "a word is forgotten at once")


@law("saving and loading change nothing")
def saving_and_loading(case: ModelCase) -> None:
    model = case.create(seed=99)
    before = model(case.regions, case.tokens).logits
    with tempfile.TemporaryDirectory() as folder:
        save_file(case.model.state_dict(), Path(folder) / "model.safetensors")
        model.load_state_dict(load_file(Path(folder) / "model.safetensors"))
    after = model(case.regions, case.tokens).logits
    require(not torch.allclose(before, after), "its weights do not depend on the random seed")
    require_same(after, case.run().logits, "logits after loading", 0.0)


@law("evaluation is deterministic")
def evaluation_is_deterministic(case: ModelCase) -> None:
    first, second = case.run(), case.run()
    require_same(first.logits, second.logits, "logits of two runs", 0.0)
    require_same(first.attention, second.attention, "attention of two runs", 0.0)


@law("cross-entropy trains it")
def cross_entropy_trains(case: ModelCase) -> str | None:
    case.model.train()
    for _ in range(8):  # several throws of dropout
        unrolled: Unrolled = case.model(case.regions, case.tokens[..., :-1])
        functional.cross_entropy(
            unrolled.logits.flatten(0, 2), case.tokens[..., 1:].flatten(), ignore_index=PAD
        ).backward()  # type: ignore[no-untyped-call]
    parameters = list(case.model.named_parameters())
    require(all(p.grad is None or p.grad.isfinite().all() for _, p in parameters), "no finite loss")
    idle = [name for name, p in parameters if p.grad is None or not p.grad.any()]
    require(len(idle) < len(parameters), "no parameter has a gradient")
    return f"no gradient reaches {', '.join(idle)}" if idle else None


@law("a beam search may reorder its states")
def selected_rows(case: ModelCase) -> None:
    model, regions = case.model, case.regions
    memory = model.encode(regions)
    words = torch.tensor([[4, 5, 6], [7, 8, 9], [10, 4, 5]])
    state = model.step(torch.full((3, 3), START), model.start(memory, 3), memory).state
    state = model.step(words, state, memory).state
    parents = torch.tensor([[2, 0, 0], [1, 1, 1], [0, 1, 2]])
    next_words = torch.tensor([[6, 6, 7], [8, 9, 10], [4, 5, 6]])
    selected = model.step(next_words, select_rows(state, parents), memory)
    for picture, row in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 1)]:
        said = [START, int(words[picture, parents[picture, row]]), int(next_words[picture, row])]
        alone = model(regions[picture : picture + 1], torch.tensor([[said]]))
        require_same(selected.logits[picture, row], alone.logits[0, 0, -1], "logits of a row", 1e-7)
        attention = selected.attention[picture, row]
        require_same(attention, alone.attention[0, 0, -1], "attention of a row", 1e-7)


@law("pictures that stay do not notice those that leave")
def selected_pictures(case: ModelCase) -> None:
    model = case.model
    memory = model.encode(case.regions)
    first = model.step(torch.full((3, 2), START), model.start(memory, 2), memory)
    words = torch.tensor([[4, 5], [6, 7], [8, 9]])
    logits = model.step(words, first.state, memory).logits
    keep = torch.tensor([True, False, True])
    kept = model.step(
        words[keep], select_pictures(first.state, keep), select_pictures(memory, keep)
    )
    require_same(kept.logits, logits[keep], "logits", 1e-7)
