"""Bulk captioning, from files to a table, against the encoder's bare forward pass.

    python benchmarks/bulk.py [--pictures 512] [--rounds 3] [--batch-size 32] [--check]
    python benchmarks/bulk.py --kills 5 --source FOLDER --pictures 20000 --check

The first form alternates rounds of both, so that whatever else the machine does hits each, and
says the rate of one as a share of the other. The second captions the pictures of a folder twice:
once undisturbed, once killed that many times (SIGKILL, at random moments) and started again; it
compares the bytes, and says how much memory the undisturbed run took at most.
"""

import argparse
import filecmp
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import sightline
from encode import make_pictures, time_bare
from sightline.bulk.sources import PICTURES


def time_job(captioner: sightline.Captioner, folder: Path, batch_size: int, check: bool) -> float:
    """Seconds from files to a complete table."""
    with tempfile.TemporaryDirectory() as output:
        began = time.perf_counter()
        sightline.caption_all(
            folder,
            Path(output) / "captions.jsonl",
            captioner=captioner,
            batch_size=batch_size,
            check=check,
        )
        return time.perf_counter() - began


def compare_rates(options: argparse.Namespace) -> None:
    captioner = sightline.load(*([options.model] if options.model else []), device="cpu")
    encoder = captioner.encoder
    with tempfile.TemporaryDirectory() as folder:
        paths = make_pictures(Path(folder), options.pictures)
        pixels = torch.from_numpy(np.stack([encoder.preprocessing.load(p)[0] for p in paths]))
        time_bare(encoder, pixels[: options.batch_size], options.batch_size)  # warm up
        bare: list[float] = []
        job: list[float] = []
        for _ in range(options.rounds):
            bare.append(time_bare(encoder, pixels, options.batch_size))
            job.append(time_job(captioner, Path(folder), options.batch_size, options.check))
    shares = [b / j for b, j in zip(bare, job, strict=True)]
    print(f"{encoder.name}, {len(paths)} pictures, {torch.get_num_threads()} threads")
    print(f"bare forward pass   {len(paths) / min(bare):7.1f} pictures/s (best round)")
    print(f"files to table      {len(paths) / min(job):7.1f} pictures/s (best round)")
    print(f"files to table/bare {statistics.median(shares):7.1%} (median round)")


def command(source: Path, output: Path, options: argparse.Namespace) -> list[str]:
    check = ["--check"] if options.check else []
    size = ["--batch-size", str(options.batch_size)]
    size += ["--model", str(options.model)] if options.model else []
    program = [sys.executable, "-m", "sightline", "caption", str(source), "-o", str(output)]
    return [*program, *size, *check]


def count_rows(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def compare_killed(options: argparse.Namespace) -> None:
    """Link the pictures into a folder, so that both runs see the same ones."""
    random.seed(0)
    with tempfile.TemporaryDirectory() as base:
        source = Path(base) / "pictures"
        source.mkdir()
        every = (p for p in sorted(options.source.rglob("*")) if p.suffix.lower() in PICTURES)
        for number, path in zip(range(options.pictures), every, strict=False):
            (source / f"{number:08d}{path.suffix}").symlink_to(path.resolve())
        whole, cut = Path(base) / "whole" / "captions.jsonl", Path(base) / "cut" / "captions.jsonl"
        began = time.monotonic()
        subprocess.run(command(source, whole, options), check=False, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
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
        print(f"largest resident size {memory:.2f} GB")
        print(f"killed {kills} times; the same bytes: {'yes' if same else 'NO'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pictures", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--model", type=Path, help="Default: the bundled captioner.")
    parser.add_argument("--source", type=Path, help="A folder of pictures, with --kills.")
    options = parser.parse_args()
    if options.kills:
        compare_killed(options)
    else:
        compare_rates(options)


if __name__ == "__main__":
    main()
