"""Every captioner on the same regions: training and beam-5 captions per second, peak memory.

    python benchmarks/models.py [--rounds 3] [--model grid_td]

Sizes and objectives are those of the Flickr8k recipes: 32 pictures of 81 regions, five captions of
11 words each; decoding makes captions of 11 words, for 32 pictures at once. Every captioner works
in a process of its own, which tells how much memory it took at most; rounds go over all of them in
turn, so that a busy machine slows them all alike.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from sightline.decoding.beam import BeamOptions, beam_search
from sightline.decoding.constraints import Constraints
from sightline.models.registry import create_model, list_models
from sightline.recipe import load_recipe
from sightline.regions import Regions
from sightline.text.vocabulary import END, START
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.registry import create_objective
from sightline.training.schedule import create_optimizer

RECIPES = Path(__file__).parents[1] / "recipes" / "flickr8k"
PICTURES, CAPTIONS, REGIONS, REGION_DIM, VOCABULARY, WORDS = 32, 5, 81, 1280, 2543, 11
SEARCH = BeamOptions(beam=5, constraints=Constraints(max_length=WORDS, min_length=WORDS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", choices=list_models(), action="append", help="default: all")
    parser.add_argument("--alone", choices=list_models(), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(measure(arguments.alone)))
        return
    names = arguments.model or list_models()
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(arguments.rounds):
        for name in names:
            command = [sys.executable, __file__, "--alone", name]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            measured[name].append(json.loads(done.stdout))
    threads = torch.get_num_threads()
    print(f"{PICTURES} pictures of {REGIONS} regions, {threads} threads, {arguments.rounds} rounds")
    print("model                 parameters  training captions/s  beam-5 captions/s  peak memory")
    for name in names:
        middle = {
            key: statistics.median(row[key] for row in measured[name]) for key in measured[name][0]
        }
        print(
            f"{name:20}  {middle['parameters'] / 1e6:8.1f} M  {middle['training']:19.0f}  "
            f"{middle['decoding']:17.0f}  {middle['memory']:8.2f} GB"
        )


def measure(name: str) -> dict[str, float]:
    """What one captioner does, in this process."""
    torch.manual_seed(0)
    recipe = load_recipe(RECIPES / f"{name}.yaml")
    model = create_model(name, VOCABULARY, REGION_DIM, recipe.model_options).train()
    objective = create_objective(recipe.objective)
    optimizer = create_optimizer(model, recipe.optimizer)
    batch = make_batch()

    def train() -> None:
        terms = objective.terms(model, batch, 0)
        loss = sum(term.weight * term.total for term in terms.values()) / batch.tokens
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.optimizer.clip)
        optimizer.step()
        optimizer.zero_grad()

    @torch.inference_mode()
    def decode() -> None:
        beam_search(model, model.encode(batch.regions), SEARCH)

    training = best_seconds(train)
    model.eval()
    decoding = best_seconds(decode)
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "training": PICTURES * CAPTIONS / training,
        "decoding": PICTURES / decoding,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def make_batch() -> CaptionBatch:
    targets = torch.randint(4, VOCABULARY, (PICTURES, CAPTIONS, WORDS + 1))
    targets[..., -1] = END
    inputs = torch.cat([torch.full_like(targets[..., :1], START), targets[..., :-1]], -1)
    mask = torch.ones(PICTURES, REGIONS, dtype=torch.bool)
    vectors = torch.rand(PICTURES, REGIONS, REGION_DIM)
    return CaptionBatch(Regions(vectors, mask, torch.rand(PICTURES, REGIONS, 4)), inputs, targets)


def best_seconds(work) -> float:  # type: ignore[no-untyped-def]
    """Of three times, after one to warm up."""
    work()
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


if __name__ == "__main__":
    main()
