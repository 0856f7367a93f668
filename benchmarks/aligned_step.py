"""A step of the aligned Transformer, both of its players, against one of the plain Transformer.

    python benchmarks/aligned_step.py [--rounds 5] [--length 12]

The models are those of the Flickr8k recipes: 32 pictures of 81 regions, five captions each. Plain
and aligned steps are taken in turn. Prints their ratio, which should be at most 2.
"""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path

import torch

from sightline.models.registry import create_model
from sightline.recipe import load_recipe
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.registry import create_objective
from sightline.training.schedule import create_optimizer
from train_step import CAPTIONS, PICTURES, REGION_DIM, VOCABULARY, make_batch, seconds

RECIPES = Path(__file__).parents[1] / "recipes" / "flickr8k"


def make_step(name: str, batch: CaptionBatch) -> Callable[[], None]:
    """A whole step of a recipe: terms of the loss, gradients, clipping, the optimiser."""
    torch.manual_seed(0)
    recipe = load_recipe(RECIPES / f"{name}.yaml")
    model = create_model(name, VOCABULARY, REGION_DIM, recipe.model_options).train()
    objective = create_objective(recipe.objective)
    optimizer = create_optimizer(model, recipe.optimizer)

    def step() -> None:
        terms = objective.terms(model, batch, 0)
        loss = sum(term.weight * term.total for term in terms.values() if term.weight)
        (loss / batch.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.optimizer.clip)
        optimizer.step()
        optimizer.zero_grad()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--length", type=int, default=12, help="words, the end word included")
    options = parser.parse_args()
    batch = make_batch(options.length)
    plain, aligned = make_step("transformer", batch), make_step("aligned_transformer", batch)
    plain()
    aligned()
    rounds = [(seconds(plain), seconds(aligned)) for _ in range(options.rounds)]
    captions = PICTURES * CAPTIONS
    print(f"{captions} captions of {options.length} words, {torch.get_num_threads()} threads")
    for name, times in zip(("plain", "aligned"), zip(*rounds, strict=True), strict=True):
        print(f"{name:16}{min(times):7.3f} s   {captions / min(times):6.0f} captions/s")
    ratio = statistics.median(a / p for p, a in rounds)
    print(f"aligned / plain {ratio:7.2f}     (median round)")


if __name__ == "__main__":
    main()
