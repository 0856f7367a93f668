"""Run the README's commands in order, as a new user would, and say how long each took.

    python tools/readme_commands.py FOLDER [--tests]

clones this repository into FOLDER, which must be new, and runs `make demo` there (it sets up an
environment of its own), with `--tests` also `make test`, and then every command of the README's
table. Words in capitals stand for small things that are made first: a folder of drawn scenes, a
photograph. Training is cut short. The exit code is that of the worst command.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCENES = "sightline data scenes scenes --train 24 --dev 3 --test 4 --size 64 --difficulty easy"
# What the capitals of the README stand for, and what makes a command small.
STANDS_FOR = {
    "FOLDER": "scenes",
    "PHOTOS": "photos",
    "RUN": "runs/flickr8k-soft_attention",
    "RUN…": "runs/flickr8k-soft_attention",
    "MODULE": "integrated",
}
SMALLER = {
    "train": "epochs=12 then=[] encoder.name=efficientnet_lite0 encoder.size=64 dev.beam=1 "
    "data.min_count=1 optimizer.learning_rate=3e-3 schedule.warmup=5 batch.size=8",
    "experiment": "--set methods=[attention]",
    "encode": "--encoder efficientnet_lite0 --size 64",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--tests", action="store_true", help="run `make test`, too")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True)
    clone = folder / "sightline"
    steps = [(f"git clone {ROOT} {clone}", folder)]
    steps += [(f"make {target}", clone) for target in ("demo", "test")[: 1 + options.tests]]
    worst = max(report(command, where, None) for command, where in steps)
    programs = clone / ".venv" / "bin"
    prepare(folder)
    for command in [SCENES, *map(small, table_of_commands())]:
        worst = max(worst, report(command, folder, programs))
    sys.exit(worst)


def report(command: str, folder: Path, programs: Path | None) -> int:
    """Run a command, and print it with its time and how its output ends."""
    print(f"$ {command}", flush=True)
    began = time.monotonic()
    done = run(command, folder, programs)
    seconds = time.monotonic() - began
    for line in (done.stdout + done.stderr).strip().splitlines()[-3:]:
        print(f"  {line.rpartition(chr(13))[2][:150]}")
    print(f"  exit code {done.returncode}, {seconds:.1f} s", flush=True)
    return done.returncode


def run(
    command: str, folder: Path, programs: Path | None, timeout: float = 3600
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with the programs of an environment and nothing of ours."""
    program, *arguments = shlex.split(command)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SIGHTLINE"))}
    environment["SIGHTLINE_CACHE"] = str(folder / "cache")
    if programs is not None:
        program = str(programs / program)
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def table_of_commands() -> list[str]:
    """The commands of the README's table, as printed."""
    readme = (ROOT / "README.md").read_text("utf-8")
    return re.findall(r"^\|.*?\| `(sightline .*?)` \|", readme, re.MULTILINE)


def small(command: str) -> str:
    """A printed command with what its capitals stand for.

    >>> small("sightline data check FOLDER").strip()
    'sightline data check scenes'
    """
    name = command.split()[1]
    # Scenes have boxes of their own.
    command = command.replace(" --data DATA", "").replace(" --boxes BOXES", "")
    command = command.replace("-o FOLDER", "-o table").replace("=FOLDER", "=scenes")
    text = " ".join(STANDS_FOR.get(word, word) for word in command.split())
    return f"{text} {SMALLER.get(name, '')}"


def prepare(folder: Path) -> None:
    """What the commands name, but for scenes: photographs, a plug-in, captions and references."""
    (folder / "photos").mkdir()
    for name in ("photo.jpg", "photos/dog.jpg"):
        shutil.copyfile(ROOT / "examples" / "dog.jpg", folder / name)
    page = (ROOT / "docs" / "how-to" / "add-a-method.md").read_text("utf-8")
    code = re.search(r"Save this as `integrated.py`:\n\n```python\n(.*?)```", page, re.DOTALL)
    assert code is not None
    (folder / "integrated.py").write_text(code[1], encoding="utf-8")
    captions = [{"image_id": 1, "caption": "a dog runs"}]
    (folder / "results.json").write_text(json.dumps(captions))
    reference = {"images": [{"id": 1, "file_name": "1.jpg"}]}
    reference["annotations"] = [{"image_id": 1, "caption": "a dog is running"}]
    (folder / "captions_val2014.json").write_text(json.dumps(reference))


if __name__ == "__main__":
    main()
