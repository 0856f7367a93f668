"""How long a million, a hundred million or a thousand million pictures take, on paper.

    python benchmarks/scale.py --measure FOLDER [--pictures 96]   # -> docs/scale.json
    python benchmarks/scale.py      # -> the table of docs/scale.md, docs/scale.png

Measured, on one core of the machine at hand: processor seconds of each stage of a batch (so that
other work on the machine does not count), bytes in and out, what it takes to list a file and to
commit a batch. Simulated: machines that take batches from one list, each batch with the duration of
a measured one, machines of unequal speed, machines that are lost. Every assumption is in
`ASSUMED`, and is printed with the result.
"""

import argparse
import functools
import heapq
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parents[1] / "docs"
RESULT, FIGURE = DOCS / "scale.json", DOCS / "scale.png"
BATCH = 32
PART = 1024  # rows that `--engine ray` commits at once

ASSUMED = {
    "speed_spread": 0.10,  # standard deviation of a machine's speed, as a share
    "days_between_losses": 30.0,  # of one machine
    "days_between_losses_spot": 1.0,  # of a machine that may be taken away
    "seconds_to_replace": 300.0,  # a lost machine, its start and its captioner's
    "gpu_pictures_per_second": 1000.0,  # captioned and checked; its cores decode for it
}


@dataclass(frozen=True)
class Fleet:
    """Machines of one kind."""

    name: str
    machines: int
    cores: int
    gpu: bool = False
    spot: bool = False


FLEETS = [
    Fleet("1 laptop, 8 cores", 1, 8),
    Fleet("1 machine, 64 cores", 1, 64),
    Fleet("16 machines, 64 cores", 16, 64),
    Fleet("16 machines, 64 cores, may be taken away", 16, 64, spot=True),
    Fleet("16 machines, 32 cores and a GPU", 16, 32, gpu=True),
    Fleet("256 machines, 64 cores", 256, 64),
]
SIZES = (10**6, 10**8, 10**9)


def measure(folder: Path, pictures: int) -> dict[str, Any]:
    """Processor seconds of each stage, batch by batch, on one thread."""
    import torch

    import sightline
    from sightline.bulk.items import Item
    from sightline.bulk.job import Job
    from sightline.bulk.reading import Opened, open_item
    from sightline.bulk.sources import open_source
    from sightline.encoders.preprocessing import Preprocessing

    torch.set_num_threads(1)
    captioner = sightline.load(device="cpu")
    preprocessing: Preprocessing = captioner.encoder.preprocessing
    job = Job(captioner, details=False)
    began = time.process_time()
    items: list[Item] = list(open_source(folder))
    listing = (time.process_time() - began) / len(items)
    chosen = items[:: max(1, len(items) // pictures)][:pictures]
    stages: dict[str, list[float]] = {n: [] for n in ("read", "encode", "caption", "check")}
    bytes_in, bytes_out, commits = [], [], []

    def timed(stage: str, work: Any) -> Any:
        began = time.process_time()
        result = work()
        stages[stage].append((time.process_time() - began) / BATCH)
        return result

    with tempfile.TemporaryDirectory() as scratch:
        for first in range(0, len(chosen) - BATCH + 1, BATCH):
            batch = chosen[first : first + BATCH]
            bytes_in += [len(item.read()) for item in batch]
            opened = timed("read", lambda b=batch: [open_item(item, preprocessing) for item in b])
            good = [picture for picture in opened if isinstance(picture, Opened)]
            encoded = timed("encode", lambda g=good: job._encode(g))
            captions = functools.partial(job.captioner.captions, encoded, details=False)
            timed("caption", captions)
            timed("check", functools.partial(captions, check=True))
            rows = [json.dumps(record.row()) for record in job.caption(good)]
            bytes_out += [len(row) for row in rows]
            began = time.monotonic()
            with open(Path(scratch) / f"{first}", "w") as file:
                file.write("\n".join(rows))
                file.flush()
                os.fsync(file.fileno())
            commits.append(time.monotonic() - began)
    # `check` captions first: what it adds is what counts.
    stages["check"] = [c - p for c, p in zip(stages["check"], stages["caption"], strict=True)]
    first_pass = stages["encode"]
    return {
        "captioner": captioner.encoder.name,
        "pictures": BATCH * len(first_pass),
        "batch": BATCH,
        "seconds": {name: [round(s, 6) for s in values] for name, values in stages.items()},
        "listing_seconds": listing,
        "commit_seconds": statistics.median(commits),
        "bytes_in": statistics.mean(bytes_in),
        "bytes_out": statistics.mean(bytes_out),
    }


def batch_seconds(measured: dict[str, Any], fleet: Fleet, check: bool) -> np.ndarray:
    """Durations of a batch on one core of a fleet, one for each batch that was measured."""
    if fleet.gpu:  # the slower of the two: a machine's cores that decode, its GPU
        decoding = BATCH * np.array(measured["seconds"]["read"])
        return np.maximum(decoding, fleet.cores * BATCH / ASSUMED["gpu_pictures_per_second"])
    stages = ["read", "encode", "caption", *(["check"] if check else [])]
    return BATCH * np.sum([measured["seconds"][stage] for stage in stages], axis=0)


def simulate(measured: dict[str, Any], fleet: Fleet, pictures: int, seed: int) -> float:
    """Hours until the last batch is captioned, if nothing waits for the driver.

    Machines take chunks of batches from one list; a chunk's duration is the sum of as many draws
    of a measured batch (by its mean and variance, where they are many). A lost machine loses the
    batches that were under way, and another takes its place.
    """
    random = np.random.default_rng(seed)
    draws = batch_seconds(measured, fleet, check=True)
    batches = pictures / BATCH
    tasks = int(min(batches, max(64 * fleet.machines, 4096)))
    per_task = batches / tasks  # batches of a chunk
    mean = per_task * draws.mean() / fleet.cores
    spread = np.sqrt(per_task) * draws.std() / fleet.cores
    speed = np.exp(random.normal(0, ASSUMED["speed_spread"], fleet.machines))
    days = ASSUMED["days_between_losses_spot" if fleet.spot else "days_between_losses"]
    lost = random.exponential(days * 86400, fleet.machines)
    free = [(0.0, machine) for machine in range(fleet.machines)]
    end = 0.0
    for _ in range(tasks):
        now, machine = heapq.heappop(free)
        now += max(mean / 2, random.normal(mean, spread)) / speed[machine]
        while now > lost[machine]:  # its cores' batches are done again by its successor
            again = draws.mean() / speed[machine]
            now += ASSUMED["seconds_to_replace"] + again
            lost[machine] = now + random.exponential(days * 86400)
        end = max(end, now)
        heapq.heappush(free, (now, machine))
    return end / 3600


def driver_hours(measured: dict[str, Any], pictures: int) -> float:
    """Hours that the one driver takes to list the files and to commit parts, one by one."""
    commits = pictures / PART * measured["commit_seconds"]
    return float(commits + pictures * measured["listing_seconds"]) / 3600


def hours_text(hours: float) -> str:
    if hours < 1 / 30:
        return f"{3600 * hours:.0f} s"
    if hours < 1:
        return f"{60 * hours:.0f} min"
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:,.0f} days"


def report(measured: dict[str, Any], seeds: int) -> None:
    """The table of docs/scale.md and its figure: a panel for each number of pictures."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    print("| machines | pictures | captioning, median | 5 % to 95 % | the driver alone |")
    print("| --- | --- | --- | --- | --- |")
    figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.6), sharey=True, layout="constrained")
    rows = range(len(FLEETS))
    for pictures, panel in zip(SIZES, panels, strict=True):
        driver = driver_hours(measured, pictures)
        for row, fleet in zip(rows, FLEETS, strict=True):
            hours = [simulate(measured, fleet, pictures, seed) for seed in range(seeds)]
            low, median, high = np.percentile(hours, [5, 50, 95])
            panel.plot([low, high], [row, row], color="C0", linewidth=4, alpha=0.4)
            panel.plot(median, row, "o", color="C0", markersize=5)
            panel.annotate(hours_text(median), (high, row), (6, -3), textcoords="offset points")
            span = f"{hours_text(low)} to {hours_text(high)}"
            cells = [fleet.name, f"{pictures:,}", hours_text(median), span, hours_text(driver)]
            print(f"| {' | '.join(cells)} |")
        panel.axvline(driver, color="C1", linestyle="--", linewidth=1.2)
        panel.set(xscale="log", xlabel="hours", title=f"{pictures:,} pictures")
        panel.set_xlim(right=panel.get_xlim()[1] * 60)
        panel.grid(axis="x", color="0.92")
    panels[0].set_yticks(list(rows), [fleet.name for fleet in FLEETS])
    panels[0].invert_yaxis()
    figure.suptitle(
        "Captioning and checking: median and 5-95 % of simulated runs; dashed: one driver's limit",
        fontsize=10,
    )
    figure.savefig(FIGURE, dpi=120)
    print(f"\nassumed: {ASSUMED}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measure", type=Path, metavar="FOLDER")
    parser.add_argument("--pictures", type=int, default=96)
    parser.add_argument("--seeds", type=int, default=40)
    options = parser.parse_args()
    if options.measure:
        measured = measure(options.measure, options.pictures)
        RESULT.write_text(json.dumps(measured, indent=1) + "\n", "utf-8")
    measured = json.loads(RESULT.read_text("utf-8"))
    for stage, seconds in measured["seconds"].items():
        spread = statistics.stdev(seconds)
        print(
            f"{stage:8} {1000 * statistics.mean(seconds):7.1f} ms a picture (± {1000 * spread:.1f})"
        )
    report(measured, options.seeds)


if __name__ == "__main__":
    main()
