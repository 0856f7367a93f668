"""A self-critical step: the share that its reward takes, and what drawing words fast is worth.

    python benchmarks/scst.py [--rounds 5] [--model soft_attention] [--words 2539] [--pictures 32]

32 pictures with five sampled captions each, at the sizes of the Flickr8k recipes: references for
6,000 pictures, of words as frequent as Zipf's law has it. The step is whole: sampling, reward,
gradients, AdamW; the reward is timed inside it. Captions of a model that is not trained are as
long as the limit, twenty words, so the reward has more to count than with a trained one.
Last, steps that draw by running sums alternate with steps that draw by `torch.multinomial`.
"""

import argparse
import statistics
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from sightline.data.dataset import CaptionedImage
from sightline.decoding import stepwise
from sightline.models.registry import create_model, list_models
from sightline.recipe import OptimizerRecipe, load_recipe
from sightline.regions import Regions
from sightline.text.vocabulary import END, SPECIAL, START, Vocabulary
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.registry import create_objective
from sightline.training.objectives.self_critical import SelfCritical
from sightline.training.schedule import create_optimizer

RECIPES = Path(__file__).parents[1] / "recipes" / "flickr8k"
TRAINING, REGIONS, REGION_DIM = 6_000, 81, 1280


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", choices=list_models(), default="soft_attention")
    parser.add_argument("--words", type=int, default=2_539, help="of the vocabulary")
    parser.add_argument("--pictures", type=int, default=32, help="of a batch")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    vocabulary = Vocabulary([f"word{i}" for i in range(arguments.words)])
    rewards = {"CIDEr-D": {"cider_d": 1.0}, "and BLEU-4": {"cider_d": 1.0, "bleu4": 0.5}}
    images = make_images(vocabulary)
    for name, weights in rewards.items():
        objective = create_objective({"name": "self_critical", "reward": weights})
        assert isinstance(objective, SelfCritical)
        began = time.perf_counter()
        objective.prepare(images, vocabulary)
        prepared = time.perf_counter() - began
        sizes = (len(vocabulary), arguments.pictures)
        steps, inside = measure(objective, arguments.model, *sizes, arguments.rounds)
        shares = [reward / step for reward, step in zip(inside, steps, strict=True)]
        print(
            f"{name:11} step {statistics.median(steps):.3f} s, reward "
            f"{1e3 * statistics.median(inside):.1f} ms: {statistics.median(shares):.1%} of it "
            f"(references of {len(images)} pictures prepared once, in {prepared:.1f} s)"
        )
    compare_draws(images, vocabulary, arguments.model, arguments.pictures, arguments.rounds)


def compare_draws(
    images: list[CaptionedImage], vocabulary: Vocabulary, model: str, pictures: int, rounds: int
) -> None:
    """Steps that draw by running sums against steps that draw by `torch.multinomial`."""
    objective = create_objective({"name": "self_critical"})
    assert isinstance(objective, SelfCritical)
    objective.prepare(images, vocabulary)
    reward = objective.reward
    ways = {"running sums": stepwise.sample_words, "multinomial": multinomial}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    alone: dict[str, list[float]] = {way: [] for way in ways}
    chances = torch.rand(pictures, 5, len(vocabulary)).softmax(-1)
    for _ in range(rounds):
        for way, sample_words in ways.items():
            objective.reward = reward
            with patch.object(stepwise, "sample_words", sample_words):
                steps, _ = measure(objective, model, len(vocabulary), pictures, 1)
            seconds[way] += steps
            began = time.perf_counter()
            for _ in range(20):
                sample_words(chances, torch.Generator())
            alone[way].append(time.perf_counter() - began)
    fast, slow = ways
    for what, times in (("a draw", alone), ("a step", seconds)):
        ratios = [b / a for a, b in zip(times[fast], times[slow], strict=True)]
        print(f"{what} by {fast} is {statistics.median(ratios):.2f} times as fast as by {slow}")


def multinomial(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """How words were drawn before."""
    words = torch.multinomial(probabilities.flatten(0, 1), 1, generator=generator)
    return words.view(probabilities.shape[:2])


def measure(
    objective: SelfCritical, name: str, vocabulary_size: int, pictures: int, rounds: int
) -> tuple[list[float], list[float]]:
    """Seconds of each step, and of the reward in it."""
    options = load_recipe(RECIPES / f"{name}.yaml").model_options
    model = create_model(name, vocabulary_size, REGION_DIM, options).train()
    optimizer = create_optimizer(model, OptimizerRecipe(learning_rate=1e-6))
    steps: list[float] = []
    inside: list[float] = []
    reward = objective.reward
    assert reward is not None

    def timed(tokens: Tensor, which: Tensor) -> Tensor:
        began = time.perf_counter()
        values = reward(tokens, which)
        inside.append(time.perf_counter() - began)
        return values

    objective.reward = timed  # type: ignore[assignment]
    for _ in range(rounds + 1):
        batch = make_batch(vocabulary_size, pictures)
        began = time.perf_counter()
        terms = objective.terms(model, batch, 0)
        loss = sum(term.weight * term.total for term in terms.values()) / batch.tokens
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        steps.append(time.perf_counter() - began)
    return steps[1:], inside[1:]


def make_images(vocabulary: Vocabulary) -> list[CaptionedImage]:
    """Pictures nobody looks at, with five captions of about eleven words each."""
    random = np.random.default_rng(0)
    words = len(vocabulary.words) - len(SPECIAL)
    chance = 1 / np.arange(1, words + 1)
    chance /= chance.sum()
    nothing = Image.new("RGB", (1, 1))
    images = []
    for i in range(TRAINING):
        lengths = random.integers(7, 16, 5)
        captions = [
            " ".join(f"word{w}" for w in random.choice(words, length, p=chance))
            for length in lengths
        ]
        images.append(CaptionedImage(f"{i}", nothing, tuple(captions), "train"))
    return images


def make_batch(vocabulary_size: int, pictures: int) -> CaptionBatch:
    targets = torch.randint(len(SPECIAL), vocabulary_size, (pictures, 5, 12))
    targets[..., -1] = END
    inputs = torch.cat([torch.full_like(targets[..., :1], START), targets[..., :-1]], -1)
    mask = torch.ones(pictures, REGIONS, dtype=torch.bool)
    regions = Regions(torch.rand(pictures, REGIONS, REGION_DIM), mask, torch.rand(1, REGIONS, 4))
    return CaptionBatch(regions, inputs, targets, 1.0, torch.randperm(TRAINING)[:pictures])


if __name__ == "__main__":
    main()
