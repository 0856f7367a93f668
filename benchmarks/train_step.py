"""A training step against the matrix products in it.

    python benchmarks/train_step.py [--rounds 5] [--length 12]

Soft attention at the sizes of `flickr8k/soft_attention`: 32 pictures of 81 regions,
five captions each. The products of a step (forward, and the two of each in the backward pass) are
timed alone, on tensors of the same shapes, in the same rounds. Prints their ratio, captions/s and
the peak memory of the process.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import torch

from sightline.models.registry import create_model
from sightline.models.soft_attention import SoftAttentionConfig
from sightline.recipe import OptimizerRecipe
from sightline.regions import Regions
from sightline.text.vocabulary import END, START
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.registry import create_objective
from sightline.training.schedule import create_optimizer

PICTURES, CAPTIONS, REGIONS, REGION_DIM, VOCABULARY = 32, 5, 81, 1280, 2543


def make_batch(length: int) -> CaptionBatch:
    targets = torch.randint(4, VOCABULARY, (PICTURES, CAPTIONS, length))
    targets[..., -1] = END
    inputs = torch.cat([torch.full_like(targets[..., :1], START), targets[..., :-1]], -1)
    mask = torch.ones(PICTURES, REGIONS, dtype=torch.bool)
    vectors = torch.rand(PICTURES, REGIONS, REGION_DIM)
    return CaptionBatch(Regions(vectors, mask, torch.zeros(PICTURES, REGIONS, 4)), inputs, targets)


def make_step(batch: CaptionBatch) -> Callable[[], None]:
    """A whole step: terms of the loss, gradients, clipping, AdamW."""
    torch.manual_seed(0)
    model = create_model("soft_attention", VOCABULARY, REGION_DIM).train()
    objective = create_objective(
        {"name": "cross_entropy", "label_smoothing": 0.1, "doubly_stochastic": 0.05}
    )
    optimizer = create_optimizer(model, OptimizerRecipe())

    def step() -> None:
        terms = objective.terms(model, batch, 0)
        loss = sum(term.weight * term.total for term in terms.values()) / batch.tokens
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def make_products(length: int) -> Callable[[], None]:
    """Every product of that step, alone: rows x inputs x outputs, and how often."""
    c = SoftAttentionConfig()
    rows = PICTURES * CAPTIONS
    every, places = rows * length, PICTURES * REGIONS
    d, n, m, a = c.region_width, c.state_width, c.word_width, c.attention_width
    shapes = [
        (places, REGION_DIM, d, 1),  # project
        (places, d, a, 1),  # key
        (PICTURES, d, 2 * n, 1),  # init_hidden, init_cell
        (every, m, 4 * n, 1),  # word_to_gates
        (rows, n, a + 1 + 4 * n, length),  # from_hidden
        (rows, d, 4 * n, length),  # context_to_gates
        (rows * REGIONS, a, 1, length),  # score
        (every, n, m, 1),  # state_to_output
        (every, d, m, 1),  # context_to_output
        (every, m, VOCABULARY, 1),  # output
    ]
    operands = [
        (torch.rand(r, i), torch.rand(i, o), torch.rand(r, o), times) for r, i, o, times in shapes
    ]
    weights, values = torch.rand(PICTURES, CAPTIONS, REGIONS), torch.rand(PICTURES, REGIONS, d)
    context = torch.rand(PICTURES, CAPTIONS, d)

    def products() -> None:
        for x, weight, gradient, times in operands:
            for _ in range(times):
                x @ weight  # forward
                gradient @ weight.T  # gradient of the input
                x.T @ gradient  # gradient of the weight
        for _ in range(length):  # the context: weights over annotations, and back
            weights @ values
            context @ values.transpose(1, 2)
            weights.transpose(1, 2) @ context

    return products


def seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--length", type=int, default=12, help="words, the end word included")
    options = parser.parse_args()
    step, products = make_step(make_batch(options.length)), make_products(options.length)
    step()
    products()
    steps, alone = [], []
    for _ in range(options.rounds):
        steps.append(seconds(step))
        alone.append(seconds(products))
    ratios = [s / p for s, p in zip(steps, alone, strict=True)]
    captions = PICTURES * CAPTIONS
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{captions} captions of {options.length} words, {torch.get_num_threads()} threads")
    print(f"step                {min(steps):7.3f} s   {captions / min(steps):6.0f} captions/s")
    print(f"its products alone  {min(alone):7.3f} s")
    print(f"step / products     {statistics.median(ratios):7.2f}   (median round)")
    print(f"peak memory         {peak:7.2f} GB")


if __name__ == "__main__":
    main()
