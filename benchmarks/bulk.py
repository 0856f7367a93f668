"""Bulk captioning: its rate, its memory, its bytes when it is killed, and Ray's efficiency.

    python benchmarks/bulk.py [--source FOLDER] [--pictures 64] [--rounds 2] [--beam 5] [--check]
    python benchmarks/bulk.py --kills 5 --source FOLDER --pictures 20000 --check
    python benchmarks/bulk.py --memory --source FOLDER --pictures 100000 --model CHECKPOINT
    python benchmarks/bulk.py --ray --source FOLDER --pictures 512

The first form compares files-to-table with the encoder's bare forward pass, on one thread, in
processor time, so that other work on the machine does not count; rounds alternate between the two.
With `--clock` both have all cores, and time is that of the clock. Jobs are made before.
The second captions pictures twice: once undisturbed, once killed that many times (SIGKILL, at
random moments) and started again; it compares the bytes. The third says how much memory a run holds
as it goes on. The fourth captions with one process, with two, and by Ray with one worker and with
two, and compares them once each has delivered a batch. Where there are more pictures than the
folder has, pictures are taken again and again, under other names.
"""

import argparse
import filecmp
import itertools
import json
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import sightline
from encode import make_pictures
from sightline.bulk.formats import open_format
from sightline.bulk.job import Job
from sightline.bulk.output import Output
from sightline.bulk.sink import Sink
from sightline.bulk.sources import PICTURES, open_source
from sightline.encoders.encoder import Encoder
from sightline.memory import keep_freed_memory

_TICKS = os.sysconf("SC_CLK_TCK")
# Ticks of each process that takes part; of one that has ended, the last that were seen.
_USED: dict[int, int] = {}


def time_bare(
    encoder: Encoder, pixels: torch.Tensor, batch_size: int, clock: Callable[[], float]
) -> float:
    """Seconds of the forward pass alone."""
    windows = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(len(pixels), 4)
    began = clock()
    with torch.inference_mode():
        for part in zip(pixels.split(batch_size), windows.split(batch_size), strict=True):
            encoder(*part)
    return clock() - began


def time_job(job: Job, folder: Path, clock: Callable[[], float]) -> float:
    """Seconds from files to a complete table, of a job that is made already."""
    with (
        tempfile.TemporaryDirectory() as base,
        Output(open_format(Path(base) / "captions.jsonl")) as output,
    ):
        began = clock()
        job.run(open_source(folder), output)
        return clock() - began


def compare_rates(options: argparse.Namespace) -> None:
    clock, how = time.process_time, "processor time, one thread"
    if options.clock:
        clock, how = time.monotonic, "by the clock, all cores"
    torch.set_num_threads((os.cpu_count() or 1) if options.clock else 1)
    captioner = load(options.model)
    encoder, size = captioner.encoder, options.batch_size
    checked = {"check": options.check}
    jobs = {
        beam: Job(captioner, size, options={**checked, "beam": beam}, details=False)
        for beam in options.beam
    }
    with tempfile.TemporaryDirectory() as base:
        folder = pictures_of(options, Path(base))
        paths = sorted(folder.iterdir())
        pixels = torch.from_numpy(np.stack([encoder.preprocessing.load(p)[0] for p in paths]))
        time_bare(encoder, pixels[:size], size, clock)  # warm up
        bare: list[float] = []
        seconds: dict[int, list[float]] = {beam: [] for beam in jobs}
        for _ in range(options.rounds):
            bare.append(time_bare(encoder, pixels, size, clock))
            for beam, job in jobs.items():
                seconds[beam].append(time_job(job, folder, clock))
    print(f"{encoder.name}, {len(paths)} pictures, milliseconds a picture, {how}")
    print_rates(bare, seconds, len(paths))


def print_rates(bare: list[float], jobs: dict[int, list[float]], pictures: int) -> None:
    print(f"bare forward pass     {1000 * min(bare) / pictures:6.1f}")
    for beam, seconds in jobs.items():
        shares = [b / j for b, j in zip(bare, seconds, strict=True)]
        span = f"{min(shares):.0%} to {max(shares):.0%}"
        print(
            f"files to table, beam {beam} {1000 * min(seconds) / pictures:5.1f}   rate of one as a "
            f"share of the other's: {statistics.median(shares):.1%} ({span})"
        )


def load(model: Path | None) -> sightline.Captioner:
    return sightline.load(*([model] if model else []), device="cpu")


def pictures_of(options: argparse.Namespace, base: Path) -> Path:
    """A folder with as many pictures as were asked for: links to a source's, or made ones."""
    folder = base / "pictures"
    folder.mkdir()
    if options.source is None:
        make_pictures(folder, options.pictures)
        return folder
    every = [p for p in sorted(options.source.rglob("*")) if p.suffix.lower() in PICTURES]
    spread = every[:: max(1, len(every) // options.pictures)]
    for number, path in zip(range(options.pictures), itertools.cycle(spread), strict=False):
        (folder / f"{number:08d}{path.suffix}").symlink_to(path.resolve())
    return folder


def command(source: Path, output: Path, options: argparse.Namespace) -> list[str]:
    check = ["--check"] if options.check else []
    size = ["--batch-size", str(options.batch_size)]
    size += ["--model", str(options.model)] if options.model else []
    program = [sys.executable, "-m", "sightline", "caption", str(source), "-o", str(output)]
    return [*program, *size, *check]


def count_rows(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def compare_killed(options: argparse.Namespace) -> None:
    random.seed(0)
    with tempfile.TemporaryDirectory() as base:
        source = pictures_of(options, Path(base))
        whole, cut = Path(base) / "whole" / "captions.jsonl", Path(base) / "cut" / "captions.jsonl"
        began = time.monotonic()
        subprocess.run(command(source, whole, options), check=False, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        rows = count_rows(whole)
        moments = sorted(random.uniform(0, rows - options.batch_size) for _ in range(options.kills))
        kills = 0
        while True:
            process = subprocess.Popen(command(source, cut, options), stderr=subprocess.DEVNULL)
            while process.poll() is None:
                if kills < len(moments) and count_rows(cut) >= moments[kills]:
                    time.sleep(random.uniform(0, seconds * options.batch_size / rows))
                    process.kill()
                    process.wait()
                    print(f"killed with {count_rows(cut)} rows on disk", flush=True)
                    kills += 1
                    break
                time.sleep(0.02)
            else:
                break
        same = filecmp.cmp(whole, cut, shallow=False)
        print(f"{rows} rows in {seconds:.0f} s, {rows / seconds:.1f} pictures/s")
        print(f"killed {kills} times; the same bytes: {'yes' if same else 'NO'}")


def watch_memory(options: argparse.Namespace) -> None:
    """The resident size of a run, whenever another twentieth of the pictures is done."""
    with tempfile.TemporaryDirectory() as base:
        source, output = pictures_of(options, Path(base)), Path(base) / "captions.jsonl"
        run = subprocess.Popen(command(source, output, options), stderr=subprocess.DEVNULL)
        step = max(1, options.pictures // 20)
        following = step
        while run.poll() is None:
            if (done := count_rows(output)) >= following:
                print(f"{done:8} pictures  {resident(run.pid):7.1f} MB", flush=True)
                following = (done // step + 1) * step
            time.sleep(1)
        print(f"{count_rows(output)} rows, exit code {run.returncode}")


def resident(process: int) -> float:
    """Megabytes of memory that a process has."""
    status = Path(f"/proc/{process}/status").read_text()
    size = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(size[1]) / 1000 if size else 0.0


class Moment(NamedTuple):
    """A batch was delivered: how many pictures there are now, and when that was."""

    pictures: int
    clock: float
    processor: float  # seconds of all processes that take part


class Speed(NamedTuple):
    """Pictures a second, by the clock and for each processor."""

    clock: float
    processor: float

    @classmethod
    def between(cls, first: Moment, last: Moment) -> "Speed":
        pictures = last.pictures - first.pictures
        seconds = (last.clock - first.clock, last.processor - first.processor)
        return cls(*(pictures / second for second in seconds))


def compare_engines(options: argparse.Namespace) -> None:
    import ray

    with tempfile.TemporaryDirectory() as base:
        folder = pictures_of(options, Path(base))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        ways = {
            "one process": lambda: without_ray(folder, options, 1),
            "two processes": lambda: without_ray(folder, options, 2),
            "Ray, one worker": lambda: with_ray(folder, options, 1),
            "Ray, two workers": lambda: with_ray(folder, options, 2),
        }
        speeds: dict[str, list[Speed]] = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, measure in ways.items():
                speeds[name].append(measure())
        ray.shutdown()
    print(f"{options.pictures} pictures, {os.cpu_count()} cores, pictures/s (median round)")
    for name, rounds in speeds.items():
        clock, processor = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{name:18} {clock:6.2f} by the clock, {processor:6.2f} for each busy core")
    pairs = list(zip(speeds["Ray, two workers"], speeds["two processes"], strict=True))
    for number, by in enumerate(("by the clock", "in processor time")):
        shares = [ours[number] / limit[number] for ours, limit in pairs]
        print(f"efficiency at two workers, {by}: {statistics.median(shares):.2f}")


def without_ray(folder: Path, options: argparse.Namespace, processes: int) -> Speed:
    """The rate while all processes caption: each has a share of the pictures."""
    context = multiprocessing.get_context("spawn")
    shares = [sorted(folder.iterdir())[n::processes] for n in range(processes)]
    with context.Pool(processes) as pool:
        moments = pool.starmap(deliveries, [(s, options.model, options.batch_size) for s in shares])
    # From when the last of them delivers its first batch until one of them is done.
    begin, end = max(m[0].clock for m in moments), min(m[-1].clock for m in moments)
    within = [[m for m in each if begin <= m.clock <= end] for each in moments]
    speeds = [Speed.between(each[0], each[-1]) for each in within]
    return Speed(sum(s.clock for s in speeds), statistics.mean(s.processor for s in speeds))


def deliveries(paths: list[Path], model: Path | None, batch_size: int) -> list[Moment]:
    """Caption pictures on one core; when each batch was there."""
    keep_freed_memory()
    torch.set_num_threads(1)
    moments: list[Moment] = []

    class Stopwatch(Sink):
        def write(self, records: Any, failures: Any) -> None:
            rows = json.dumps([record.row() for record in records])
            done = (moments[-1].pictures if moments else 0) + len(json.loads(rows))
            moments.append(Moment(done, time.monotonic(), time.process_time()))

    captioner = load(model)
    job = Job(captioner, batch_size, workers=1, details=False)
    job.run(open_source(paths), Stopwatch())
    return moments


def with_ray(folder: Path, options: argparse.Namespace, workers: int) -> Speed:
    from sightline.bulk.ray_engine import Cluster, _Pool, _waves

    job = Job(load(options.model), options.batch_size, details=False)
    waves = _waves(iter(open_source(folder)), options.batch_size)
    pool = _Pool(Cluster(captioners=workers, decoders=1), job, attention=False)
    moments: list[Moment] = []
    done = 0
    last: dict[int, int] = {}  # of each worker, which delivery was its last
    begin = 0
    for rows, _, _, worker in itertools.chain.from_iterable(map(pool.run, waves)):
        done += len(rows)
        moments.append(Moment(done, time.monotonic(), processor_seconds()))
        begin = begin if worker in last else len(moments) - 1
        last[worker] = len(moments) - 1
    # From when the last of them delivers its first batch until one of them is done.
    end = min(last.values())
    if len(last) < workers or end <= begin:
        raise SystemExit("too few pictures: not all workers were at work together; take more")
    return Speed.between(moments[begin], moments[end])


def processor_seconds() -> float:
    """Of this process and all that descend from it, as Ray's do."""
    parents, ticks = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            parents[int(entry.name)], ticks[int(entry.name)] = (
                int(fields[1]),
                sum(map(int, fields[11:13])),
            )
    family = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in family} - family:
        family |= more
    _USED.update({process: ticks[process] for process in family & ticks.keys()})
    return sum(_USED.values()) / _TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pictures", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--beam", type=int, nargs="+", default=[5])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--model", type=Path, help="Default: the bundled captioner.")
    parser.add_argument("--source", type=Path, help="A folder of pictures. Default: made ones.")
    parser.add_argument("--clock", action="store_true", help="Compare by the clock, on all cores.")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--kills", type=int, default=0)
    form.add_argument("--memory", action="store_true")
    form.add_argument("--ray", action="store_true")
    options = parser.parse_args()
    keep_freed_memory()  # as `sightline caption` does
    if options.kills:
        compare_killed(options)
    elif options.memory:
        watch_memory(options)
    elif options.ray:
        compare_engines(options)
    else:
        compare_rates(options)


if __name__ == "__main__":
    main()
