"""Run the README's commands in order, as a new user would, and say how long each took.

    python tools/readme_commands.py FOLDER [--tests]

clones this repository into FOLDER, which must be new, and runs `make demo` there (it sets up an
environment of its own), with `--tests` also `make test`, installs the extras that the README names,
and then runs every command of its table. Words in capitals stand for small things that are made
first: a folder of drawn scenes, a photograph, a captioner. Training is cut short. A server is asked
whether it lives, and ended. At the end, all of it is a table, with the size of the environment. The
exit code is that of the worst command.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCENES = "sightline data scenes scenes --train 24 --dev 3 --test 4 --size 64 --difficulty easy"
# A captioner of transformers that knows nothing.
THEIRS = """python -c "
from sightline.adapters.tiny import tiny
model, (image_processor, tokenizer) = tiny('blip')
for part in (model, image_processor, tokenizer):
    part.save_pretrained('captioner')
" """
# What the capitals of the README stand for, and what makes a command small.
STANDS_FOR = {
    "FOLDER": "scenes",
    "OTHER": "photos",
    "PHOTOS": "photos",
    "CAPTIONS.csv": "delivered.csv",
    "ONE.csv": "delivered.csv",
    "OTHER.csv": "other.csv",
    "hf:CAPTIONER": "hf:captioner --caption 'a dog' --method lrp",
    "RUN": "runs/flickr8k-soft_attention",
    "RUN…": "runs/flickr8k-soft_attention",
    "MODULE": "integrated",
}
_SMALL_TRAINING = (
    "then=[] encoder.name=efficientnet_lite0 encoder.size=64 dev.beam=1 data.min_count=1 "
    "optimizer.learning_rate=3e-3 schedule.warmup=5 batch.size=8"
)
SMALLER = {
    "train": f"epochs=12 {_SMALL_TRAINING}",
    "tune": f"epochs=1 {_SMALL_TRAINING} --trials 2",
    "experiment": "--set methods=[attention]",
    "serve": "--port 0",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--tests", action="store_true", help="run `make test`, too")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True)
    clone = folder / "sightline"
    rows = [report(f"git clone {ROOT} {clone}", folder, None)]
    for target in ("demo", "test")[: 1 + options.tests]:
        rows.append(report(f"make {target}", clone, None))
        print(f"  {megabytes(clone / '.venv'):,} MB in .venv", flush=True)
    programs = clone / ".venv" / "bin"
    rows.append(report(extras(), clone, programs))
    print(f"  {megabytes(clone / '.venv'):,} MB in .venv", flush=True)
    prepare(folder)
    rows += [
        report(command, folder, programs)
        for command in [SCENES, THEIRS, *map(small, table_of_commands())]
    ]
    print("\n| command | exit code | seconds |\n| --- | ---: | ---: |")
    for command, code, seconds in rows:
        print(f"| `{' '.join(command.split())}` | {code} | {seconds:.0f} |")
    sys.exit(max(code for _, code, _ in rows))


def report(command: str, folder: Path, programs: Path | None) -> tuple[str, int, float]:
    """Run a command, and print it with its time and how its output ends."""
    print(f"$ {command}", flush=True)
    began = time.monotonic()
    done = run(command, folder, programs)
    seconds = time.monotonic() - began
    for line in (done.stdout + done.stderr).strip().splitlines()[-3:]:
        print(f"  {line.rpartition(chr(13))[2][:150]}")
    print(f"  exit code {done.returncode}, {seconds:.1f} s", flush=True)
    return command, done.returncode, seconds


def megabytes(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) // 1_000_000


def run(
    command: str, folder: Path, programs: Path | None, timeout: float = 3600
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with the programs of an environment and nothing of ours."""
    program, *arguments = shlex.split(command)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SIGHTLINE"))}
    environment["SIGHTLINE_CACHE"] = str(folder / "cache")
    if programs is not None:
        program = str(programs / program)
    started = subprocess.Popen(
        [program, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    greeting = see_it_live(started) if arguments[:1] == ["serve"] else ""
    output, errors = started.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, started.returncode, greeting + output, errors)


def see_it_live(server: subprocess.Popen[str]) -> str:
    """Ask a server that has started whether it lives, and end it as Ctrl-C would; its address."""
    assert server.stdout is not None
    address = server.stdout.readline()
    if address.startswith("http"):  # otherwise it says what is wrong, and has ended
        with urllib.request.urlopen(f"{address.strip()}healthz", timeout=60) as answer:
            assert answer.status == 200
        server.send_signal(signal.SIGINT)
    return address


def table_of_commands() -> list[str]:
    """The commands of the README's table, as printed."""
    readme = (ROOT / "README.md").read_text("utf-8")
    return re.findall(r"^\|.*?\| `(sightline .*?)`(?: ¹)? \|", readme, re.MULTILINE)


def extras() -> str:
    """The command with which the README installs what some of its commands need.

    >>> extras().startswith("pip install '.[")
    True
    """
    return re.findall(r"`(pip install '\.\[.*?\]')`", (ROOT / "README.md").read_text("utf-8"))[0]


def small(command: str) -> str:
    """A printed command with what its capitals stand for.

    >>> small("sightline data check FOLDER").strip()
    'sightline data check scenes'
    """
    name = command.split()[1]
    # Scenes have boxes of their own.
    command = command.replace(" --data DATA", "").replace(" --boxes BOXES", "")
    command = command.replace("=FOLDER", "=scenes")
    text = " ".join(STANDS_FOR.get(word, word) for word in command.split())
    return f"{text} {SMALLER.get(name, '')}"


def prepare(folder: Path) -> None:
    """What the commands name, but for scenes and a captioner: photographs, a plug-in, captions."""
    (folder / "photos").mkdir()
    for name, said in (("delivered", "a dog on the grass"), ("other", "a red bus")):
        (folder / f"{name}.csv").write_text(f"file_name,caption\ndog.jpg,{said}\n")
    line = {"image": "dog.jpg", "captions": ["a dog on the grass"], "split": "test"}
    (folder / "photos" / "captions.jsonl").write_text(json.dumps(line) + "\n")
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
