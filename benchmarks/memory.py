"""Encoding and explaining with freed memory kept, as `sightline` does, and without.

    python benchmarks/memory.py [--rounds 3]

Processes of the two kinds take turns, so that whatever else the machine does hits both.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "examples" / "dog.jpg"

WORK = """
import json, sys, time
from sightline.memory import keep_freed_memory

if sys.argv[1] == "keep":
    keep_freed_memory()
import sightline

captioner = sightline.load()
picture = captioner.open(sys.argv[2])
caption = captioner.caption(picture)
work = {
    "encode 32 pictures": lambda: captioner.regions([picture] * 32),
    "LRP of a caption": lambda: captioner.explain(picture, caption),
}
took = {}
for name, do in work.items():
    do()
    began = time.perf_counter()
    for _ in range(3):
        do()
    took[name] = (time.perf_counter() - began) / 3
print(json.dumps(took))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = [(run("give back"), run("keep")) for _ in range(parser.parse_args().rounds)]
    print("work                 seconds     kept    ratio")
    for name in rounds[0][0]:
        given_back, kept = (
            statistics.median(seconds[i][name] for seconds in rounds) for i in (0, 1)
        )
        print(f"{name:18} {given_back:9.2f} {kept:8.2f} {given_back / kept:8.2f}")


def run(kind: str) -> dict[str, float]:
    """Seconds of each kind of work, in a process of its own."""
    command = [sys.executable, "-c", WORK, kind, str(PICTURE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


if __name__ == "__main__":
    main()
