"""On scenes with a habit: support tells what is made up, and to weigh by it makes that rarer.

Scenes as in `sightline.data.scenes` with a bias, but without pictures: their regions are drawn
directly, the second thing so blurred that it is often told by the first. Training scenes with a
circle on the left nearly always have a star on the right; in the scenes of the test, never.
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
from sightline.training.lrp_inference import picture_support
from sightline.training.objective import create_objective

VOCABULARY = Vocabulary(["a", "and", *SHAPES])
LOOKS = torch.randn(len(SHAPES), 12, generator=torch.Generator().manual_seed(0))
CIRCLE, STAR = (list(SHAPES).index(shape) for shape in HABIT)


@dataclass
class Scenes:
    """Two things side by side: one in a region of three on the left, one of three on the right."""

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
    for offset, things, blur in ((0, left, 0.3), (3, right, 1.6)):
        place = offset + torch.randint(3, (count,), generator=random)
        blurred = LOOKS[things] + blur * torch.randn(count, 12, generator=random)
        vectors[torch.arange(count), place, :12] += blurred
    names = list(SHAPES)
    captions = [f"a {names[i]} and a {names[j]}" for i, j in zip(left, right, strict=True)]
    mask = torch.ones(count, 6, dtype=torch.bool)
    return Scenes(Regions(vectors, mask, torch.zeros(count, 6, 4)), captions)


def two_shapes(count: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Any two that differ."""
    left = torch.randint(len(SHAPES), (count,), generator=random)
    return left, (left + torch.randint(1, len(SHAPES), (count,), generator=random)) % len(SHAPES)


def circles_without_star(random: torch.Generator) -> Scenes:
    """Every other shape is beside a circle as often."""
    others = [shape for shape in range(len(SHAPES)) if shape not in (CIRCLE, STAR)]
    right = torch.tensor(others).repeat(100)[:600]
    return draw_scenes(torch.full((600,), CIRCLE), right, random)


def training_scenes(random: torch.Generator) -> Scenes:
    left, right = two_shapes(2000, random)
    habit = (left == CIRCLE) & (torch.rand(len(left), generator=random) < 0.9)
    return draw_scenes(left, right.masked_fill(habit, STAR), random)


def caption_scenes(model: CaptionModel, scenes: Scenes) -> list[str]:
    with captioning(model) as captioner:
        memory = captioner.encode(scenes.regions)
        words = greedy(captioner, memory, Constraints(max_length=8)).tokens[:, 0]
    return [VOCABULARY.decode(row) for row in words.tolist()]


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
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)  # so that paths differ less
        batch = scenes[torch.randint(len(scenes.captions), (50,), generator=random)]
        terms = objective.terms(model, batch, 0)
        loss = sum(term.weight * term.total for term in terms.values() if term.weight)
        optimizer.zero_grad()
        (loss / batch.tokens).backward()
        optimizer.step()


@pytest.fixture(scope="module")
def world() -> tuple[CaptionModel, Scenes, torch.Generator]:
    """A captioner that cross-entropy taught, habit and all; its scenes, and dice for others."""
    random = torch.Generator().manual_seed(0)
    scenes = training_scenes(random)
    torch.manual_seed(0)
    sizes = {"word_width": 16, "state_width": 32, "attention_width": 16, "dropout": 0.1}
    model = create_model("adaptive_attention", len(VOCABULARY), 14, sizes)
    learn(model, scenes, {"name": "cross_entropy"}, 600, 3e-3, seed=0)
    return model, scenes, random


def support_of_star(model: CaptionModel, scenes: Scenes) -> Tensor:
    """Of every star that it would say after "a circle and a"."""
    batch = scenes[torch.arange(len(scenes.captions))]
    with captioning(model) as captioner:
        words = captioner(batch.regions, batch.inputs).logits.argmax(-1)
    stars = (words == VOCABULARY.id("star")) & (torch.arange(words.shape[2]) == 4)
    support = picture_support(model, batch.regions, batch.inputs, words, stars)
    assert stars.sum() > 100
    return support[stars]


@pytest.mark.xdist_group("lrp_inference")
def test_pictures_support_less_what_is_said_out_of_habit(
    world: tuple[CaptionModel, Scenes, torch.Generator],
) -> None:
    model, _, random = world
    made_up = support_of_star(model, circles_without_star(random))
    habit = draw_scenes(torch.full((600,), CIRCLE), torch.full((600,), STAR), random)
    right = support_of_star(model, habit)
    assert (right[:, None] > made_up).float().mean() > 0.65  # the area under the ROC curve
    assert (made_up < 0).float().mean() > 2 * (right < 0).float().mean()


@pytest.mark.xdist_group("lrp_inference")
def test_counterweights_lower_the_rate_of_made_up_objects_and_all_forms_keep_bleu(
    world: tuple[CaptionModel, Scenes, torch.Generator],
) -> None:
    """Against as many steps of cross-entropy from the same weights, on the same captions."""
    model, scenes, random = world
    usual = draw_scenes(*two_shapes(400, random), random)
    without = circles_without_star(random)
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    made_up, bleu = {}, {}
    for form, likelihood in {"feature": 1.0, "logit": 0.0, "counterweight": 0.0}.items():
        # (Nothing but cross-entropy is the same in all forms; that is the cheapest of them.)
        options = {"name": "lrp_inference", "form": form, "likelihood": likelihood}
        model.load_state_dict(start)
        learn(model, scenes, options, 150, 2e-3, seed=100)
        stars = ["star" in caption.split()[2:] for caption in caption_scenes(model, without)]
        made_up[form] = sum(stars) / len(stars)
        references = [[caption] for caption in usual.captions]
        scores = measure(caption_scenes(model, usual), references, ["bleu"])
        bleu[form] = {score.name: score.corpus for score in scores}["BLEU-4"]
    assert made_up["feature"] > 0.3  # the habit
    assert made_up["counterweight"] < made_up["feature"] - 0.03
    assert bleu["feature"] > 0.8
    assert min(bleu.values()) > bleu["feature"] - 0.02
