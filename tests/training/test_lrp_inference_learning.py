"""LRP-inference unlearns a habit that cross-entropy keeps.

Scenes as in `sightline.data.scenes` with a bias, but without pictures: their regions are drawn
directly, so blurred that the second thing is often told by the first. Training scenes with a circle
on the left nearly always have a star on the right; in the scenes of the test, never.
"""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from sightline.data.drawing import SHAPES
from sightline.data.scenes import HABIT
from sightline.data.vocabulary import END, Vocabulary
from sightline.decoding.constraints import Constraints
from sightline.decoding.stepwise import greedy
from sightline.decoding.words import with_start
from sightline.encoders.regions import Regions
from sightline.metrics.report import measure
from sightline.models.interface import CaptionModel
from sightline.models.registry import create_model
from sightline.training.batch import CaptionBatch
from sightline.training.drawing import captioning
from sightline.training.objective import create_objective

VOCABULARY = Vocabulary(["a", "and", *SHAPES])
LOOKS = torch.randn(len(SHAPES), 12, generator=torch.Generator().manual_seed(0))
CIRCLE, STAR = (list(SHAPES).index(shape) for shape in HABIT)


@dataclass
class Scenes:
    """Two things side by side: a region of three on the left has the one, on the right the other."""

    regions: Regions
    captions: list[str]

    def __getitem__(self, which: Tensor) -> CaptionBatch:
        words = [[*VOCABULARY.encode(self.captions[i]), END] for i in which.tolist()]
        targets = torch.tensor(words)[:, None]
        return CaptionBatch(self.regions[which], with_start(targets), targets)


def draw_scenes(left: Tensor, right: Tensor, random: torch.Generator) -> Scenes:
    count = len(left)
    vectors = 0.5 * torch.randn(count, 6, 14, generator=random)
    vectors[:, :3, 12] += 2
    vectors[:, 3:, 13] += 2
    for offset, things in ((0, left), (3, right)):
        place = offset + torch.randint(3, (count,), generator=random)
        blurred = LOOKS[things] + 1.6 * torch.randn(count, 12, generator=random)
        vectors[torch.arange(count), place, :12] += blurred
    names = list(SHAPES)
    captions = [f"a {names[i]} and a {names[j]}" for i, j in zip(left, right, strict=True)]
    mask = torch.ones(count, 6, dtype=torch.bool)
    return Scenes(Regions(vectors, mask, torch.zeros(count, 6, 4)), captions)


def two_shapes(count: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Any two that differ."""
    left = torch.randint(len(SHAPES), (count,), generator=random)
    return left, (left + torch.randint(1, len(SHAPES), (count,), generator=random)) % len(SHAPES)


def training_scenes(random: torch.Generator) -> Scenes:
    left, right = two_shapes(2000, random)
    habit = (left == CIRCLE) & (torch.rand(len(left), generator=random) < 0.9)
    return draw_scenes(left, right.masked_fill(habit, STAR), random)


def scenes_against_habit(random: torch.Generator) -> Scenes:
    others = [shape for shape in range(len(SHAPES)) if shape not in (CIRCLE, STAR)]
    right = torch.tensor(others).repeat(100)
    return draw_scenes(torch.full_like(right, CIRCLE), right, random)


def caption(model: CaptionModel, scenes: Scenes) -> list[str]:
    with captioning(model) as captioner:
        memory = captioner.encode(scenes.regions)
        words = greedy(captioner, memory, Constraints(max_length=8)).tokens[:, 0]
    return [VOCABULARY.decode(row) for row in words.tolist()]


def made_up(captions: list[str], scenes: Scenes) -> float:
    """The share of captions that name a shape which is not there."""
    wrong = [
        bool(SHAPES.keys() & set(said.split()) - set(true.split()))
        for said, true in zip(captions, scenes.captions, strict=True)
    ]
    return sum(wrong) / len(wrong)


def learn(
    model: CaptionModel,
    scenes: Scenes,
    options: dict[str, object],
    steps: int,
    rate: float,
    seed: int,
) -> None:
    objective = create_objective(options)
    objective.prepare([], VOCABULARY)
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    random = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # dropout
    model.train()
    for _ in range(steps):
        batch = scenes[torch.randint(len(scenes.captions), (50,), generator=random)]
        terms = objective.terms(model, batch, 0)
        loss = sum(term.weight * term.total for term in terms.values() if term.weight)
        optimizer.zero_grad()
        (loss / batch.tokens).backward()
        optimizer.step()


def outcomes(seed: int, arms: dict[str, dict[str, object]], **how: float):
    """After cross-entropy, made-up things and BLEU-4 of what each arm makes of the captioner."""
    random = torch.Generator().manual_seed(seed)
    scenes = training_scenes(random)
    against, usual = scenes_against_habit(random), draw_scenes(*two_shapes(300, random), random)
    torch.manual_seed(seed)
    sizes = {"word_width": 16, "state_width": 32, "attention_width": 16, "dropout": 0.1}
    model = create_model("adaptive_attention", len(VOCABULARY), 14, sizes)
    learn(model, scenes, {"name": "cross_entropy"}, 400, 3e-3, seed)
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for name, options in arms.items():
        model.load_state_dict(start)
        if options:
            learn(model, scenes, options, int(how["steps"]), how["rate"], seed + 1)
        (bleu,) = [
            score.corpus
            for score in measure(caption(model, usual), [[c] for c in usual.captions], ["bleu"])
            if score.name == "BLEU-4"
        ]
        said = caption(model, against)
        star = sum("star" in words.split() for words in said) / len(said)
        yield name, made_up(said, against), star, bleu
