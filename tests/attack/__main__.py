"""`python -m attack [pictures|files|kill] [--cases N] [--hours H] [--seed S]`."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from attack.kills import KILLS, kill_until_done
from attack.law import Case, Failure, judge
from attack.pictures import picture_case
from attack.tampering import make_targets, tampering_case

BATCH = 200  # cases to a worker


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["pictures", "files", "kill"])
    parser.add_argument("--cases", type=int, default=2000, help="cases of each kind, or kills")
    parser.add_argument("--hours", type=float, help="go on for so long, whatever --cases says")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    table = []
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        if options.what in (None, "pictures"):
            table.append(("hostile pictures", *_attack(picture_case, options)))
        if options.what in (None, "files"):
            targets = make_targets(Path(folder))
            make = lambda seed: tampering_case(targets, seed)  # noqa: E731
            table.append(("tampered files", *_attack(make, options, Path(folder))))
        if options.what == "kill":
            for name in KILLS:
                kills, failures = kill_until_done(
                    name, Path(folder) / name, options.cases, options.seed
                )
                table.append((f"kills of {name}", kills, failures))
    print(f"{'':24}{'tried':>8}{'failed':>8}")
    for name, tried, failures in table:
        print(f"{name:24}{tried:>8,}{len(failures):>8,}")
    for _, _, failures in table:
        for failure in failures[:20]:
            print(f"{failure.name}: {failure.why}", file=sys.stderr)
    sys.exit(any(failures for _, _, failures in table))


def _attack(
    make: Callable[[int], Case], options: argparse.Namespace, watched: Path | None = None
) -> tuple[int, list[Failure]]:
    tried, failures = 0, []
    for batch in _batches(options):
        failures += judge([make(seed) for seed in batch], watched)
        tried += len(batch)
        print(f"\r{tried:,} cases, {len(failures)} failed", end="", file=sys.stderr)
    print(file=sys.stderr)
    return tried, failures


def _batches(options: argparse.Namespace) -> Iterator[range]:
    """Seeds, until there are enough cases or the time is over."""
    began, first = time.monotonic(), options.seed
    while True:
        if options.hours is not None:
            if time.monotonic() - began > 3600 * options.hours:
                return
            size = BATCH
        else:
            size = min(BATCH, options.seed + options.cases - first)
        if size <= 0:
            return
        yield range(first, first + size)
        first += size


if __name__ == "__main__":
    main()
