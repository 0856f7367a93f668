"""`python -m attack [pictures|files|kill|disk|fuzz] [--cases N] [--hours H] [--seed S]`."""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import torch

from attack import servers
from attack.commands import load_commands
from attack.disk import TROUBLES, Bench, disturb
from attack.kills import TARGETS, Workshop, kill_until_done
from attack.law import Case, Failure, judge
from attack.pictures import hostile_picture, picture_case
from attack.tampering import make_targets, tampered, tampering_case

FAILED = Path("attack-failed")
BATCH = 200  # cases to a worker
CASES, KILLS, DISTURBED = 2000, 300, 12
Row = tuple[str, int, list[Failure]]  # what was attacked, how often, and what broke


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["pictures", "files", "kill", "disk", "fuzz"])
    parser.add_argument("--cases", type=int, help="cases of each kind (2,000), or kills (300)")
    parser.add_argument("--hours", type=float, help="go on for so long, whatever --cases says")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=[*TARGETS, servers.NAME], help="kill this alone")
    options = parser.parse_args()
    torch.set_num_threads(1)  # workers are forked, and torch's threads are not there after a fork
    table: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        if options.what in (None, "pictures"):
            tried, failures = _attack(picture_case, options)
            table.append(("hostile pictures", tried, failures))
            _save(failures, lambda seed: hostile_picture(Random(seed)))
        if options.what in (None, "files"):
            targets = make_targets(Path(folder))
            make = lambda seed: tampering_case(targets, seed)  # noqa: E731
            tried, failures = _attack(make, options, Path(folder))
            table.append(("tampered files", tried, failures))
            _save(failures, partial(tampered, targets))
        if options.what == "kill":
            table += _kill(Path(folder), options)
        if options.what == "disk":
            table += _disturb(Path(folder), options)
        if options.what == "fuzz":
            from attack.fuzzing import fuzz_all

            table += fuzz_all(options.cases or 100_000, options.seed)
    print(f"{'':32}{'tried':>8}{'failed':>8}")
    for name, tried, failures in table:
        print(f"{name:32}{tried:>8,}{len(failures):>8,}")
    for _, _, failures in table:
        for failure in failures[:20]:
            print(f"{failure.name}: {failure.why}", file=sys.stderr)
    sys.exit(any(failures for _, _, failures in table))


def _save(failures: list[Failure], make: Callable[[int], bytes]) -> None:
    """The files that broke the law, to be kept in tests/attack/saved when that is mended."""
    for failure in failures:
        if match := re.fullmatch(r"(\w+) (\d+)(?: \((.*)\))?", failure.name):
            FAILED.mkdir(exist_ok=True)
            file = FAILED / f"{match[3] or match[1]}--{match[2]}"
            file.write_bytes(make(int(match[2])))
            print(f"kept as {file}", file=sys.stderr)


def _kill(folder: Path, options: argparse.Namespace) -> list[Row]:
    """A row for each command that is killed."""
    load_commands()
    print("making what the commands work on", file=sys.stderr)
    workshop = Workshop(folder / "workshop")
    rows: list[Row] = []
    for name, target in TARGETS.items():
        if options.only not in (None, name):
            continue
        share = 1.0 if options.only else target.share
        kills = max(1, round(share * (options.cases or KILLS)))
        random = Random(f"{options.seed} {name}")
        rows.append((f"kills of {name}", *kill_until_done(workshop, name, kills, random)))
    if options.only in (None, servers.NAME):
        share = 1.0 if options.only else servers.SHARE
        kills = max(1, round(share * (options.cases or KILLS)))
        row = servers.kill_server(workshop, kills, Random(f"{options.seed} {servers.NAME}"))
        rows.append((f"kills of {servers.NAME}", *row))
    return rows


def _disturb(folder: Path, options: argparse.Namespace) -> list[Row]:
    """A row for each trouble."""
    load_commands()
    print("making what the commands work on", file=sys.stderr)
    bench = Bench(Workshop(folder / "workshop"))
    cases = options.cases or DISTURBED
    return [(name, *disturb(bench, name, cases, options.seed)) for name in TROUBLES]


def _attack(
    make: Callable[[int], Case], options: argparse.Namespace, watched: Path | None = None
) -> tuple[int, list[Failure]]:
    tried, failures = 0, []
    for batch in _batches(options):
        failed = judge([make(seed) for seed in batch], watched)
        failures += failed
        tried += len(batch)
        for failure in failed:
            print(f"\n{failure.name}: {failure.why}", file=sys.stderr)
        print(f"\r{tried:,} cases, {len(failures)} failed", end="", file=sys.stderr)
    print(file=sys.stderr)
    return tried, failures


def _batches(options: argparse.Namespace) -> Iterator[range]:
    """Seeds, until there are enough cases or the time is over."""
    began, first = time.monotonic(), options.seed
    last = options.seed + (options.cases or CASES)
    while True:
        if options.hours is not None:
            if time.monotonic() - began > 3600 * options.hours:
                return
            size = BATCH
        else:
            size = min(BATCH, last - first)
        if size <= 0:
            return
        yield range(first, first + size)
        first += size


if __name__ == "__main__":
    main()
