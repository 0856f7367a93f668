"""What it takes to start training on pictures that are cached, and what memory batches take.

    python benchmarks/start.py coco/soft_attention data.path=/where/coco/is

Pictures that are not cached yet are encoded first, as in training: then run it again. Seconds are
of the processor, which other work on the machine does not change, and of the clock.
"""

import argparse
import tempfile
import time
from pathlib import Path

from lightning_fabric import Fabric

from sightline.recipe import load_recipe
from sightline.training.loop import Trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--batches", type=int, default=120)
    arguments = parser.parse_args()
    recipe = load_recipe(arguments.recipe, tuple(arguments.overrides))
    began, worked = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as run:
        trainer = Trainer(Fabric(accelerator="cpu", devices=1), recipe, Path(run), True)
        trainer.resume()
        batches = trainer.batches.epoch(0)
        next(batches)
        print(
            f"{len(trainer.train_images):,} training pictures: the first batch after "
            f"{time.process_time() - worked:.1f} s of the processor, "
            f"{time.perf_counter() - began:.1f} s of the clock"
        )
        print(f"memory: {memory()}")
        for _ in range(arguments.batches):
            next(batches)
        print(f"after {arguments.batches} more batches: {memory()}")


def memory() -> str:
    """What this process holds, as Linux tells it: of its own, and of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if "Rss" in line}
    return f"{kilobytes['RssAnon'] // 1024} MB, and {kilobytes['RssFile'] // 1024} MB of files"


if __name__ == "__main__":
    main()
