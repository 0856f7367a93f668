"""Where the time of a first caption goes: a new process each time, as `sightline caption` is one.

    python benchmarks/cold_start.py [--rounds 5] [picture]

Seconds are of the processor, with one thread: other work on the machine does not change them.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "examples" / "dog.jpg"

# What `sightline caption` does, with a look at the clock in between.
STEPS = """
import json, sys, time
began = time.process_time()
took = {}
def note(step):
    took[step] = time.process_time() - began - sum(took.values())
import torch
note("import torch")
import sightline.cli.main
import sightline.cli.caption
import sightline.captioner
note("import the rest")
captioner = sightline.captioner.Captioner.load()
note("load the weights")
captioner.caption(sys.argv[1])
note("caption the picture")
print(json.dumps(took))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("picture", nargs="?", default=str(PICTURE))
    arguments = parser.parse_args()
    whole = [sys.executable, "-m", "sightline", "caption", arguments.picture]
    in_steps = [sys.executable, "-c", STEPS, arguments.picture]
    rounds = []
    for _ in range(arguments.rounds):
        command, _ = run(whole)
        total, printed = run(in_steps)
        steps = json.loads(printed)
        outside = {"start and end Python": total - sum(steps.values())}
        rounds.append({**outside, **steps, "sightline caption": command})
    print("step                     seconds   of the command")
    of_all = statistics.median(seconds["sightline caption"] for seconds in rounds)
    for step in rounds[0]:
        took = statistics.median(seconds[step] for seconds in rounds)
        print(f"{step:22} {took:9.2f} {100 * took / of_all:13.0f} %")


def run(command: list[str]) -> tuple[float, str]:
    """Its seconds, and what it printed."""
    began = _seconds_of_children()
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
    return _seconds_of_children() - began, done.stdout


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
