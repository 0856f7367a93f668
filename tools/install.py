"""Set up a virtual environment with Sightline in it, for the Makefile.

    python3 tools/install.py .venv '.[train]' [--torch cpu] [--no-hashes]

Every file is checked against its hash in `constraints.txt` before anything of it runs. What that
file does not have is installed after that by version alone, and named: torch, if the environment
has one already, if pip is offered a build of another name (`+cpu`), or with `--torch cpu`; and what
packages need on platforms other than Linux.

Torch is the large part. One that the given Python has already is used. `--torch cpu` takes the
build without libraries for a GPU from PyTorch's own index, which is not contacted otherwise.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
DEMO, TEST = "# make demo:", "# make test, as well:"  # the headings in it
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
USABLE_TORCH = ((2, 6), (3, 0))  # as in pyproject.toml
# What torch's usual build for Linux brings along; NVIDIA's, under licences of its own.
GPU_LIBRARY = re.compile(r"(nvidia|cuda)-|triton$")
# What torch and all that it needs are to fetch (docs/install.md).
SIZE, CPU_SIZE = "2.7 GB", "0.2 GB"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", help="folder of the virtual environment")
    parser.add_argument("package", help="what to install in it, such as .[train]")
    parser.add_argument("--torch", default="", choices=["", "cpu"])
    parser.add_argument("--no-hashes", action="store_true", help="install by version alone")
    options = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit("Sightline needs Python 3.11 or newer: make PYTHON=python3.11")
    python = os.path.join(options.environment, "bin", "python")
    if not os.path.exists(python):
        shared = ["--system-site-packages"] if usable(torch_here()) else []
        run([sys.executable, "-m", "venv", *shared, options.environment])
    installed = torch_of(python)
    if line := notice(installed, options.torch, has_gpu(), platform.system()):
        print(line, flush=True)
    constraints = CONSTRAINTS.read_text("utf-8")
    if not options.no_hashes:
        own_build = usable(installed) or options.torch == "cpu" or offers_own_build(python)
        hashed = hashed_part(constraints, "dev" in options.package, own_build)
        if code := with_file(hashed, lambda name: pip_hashed(python, name)):
            print(
                "Not every file is the one that constraints.txt names (see above). If your package "
                "index holds builds of its own and you trust it, add HASHES=no to the make command."
            )
            sys.exit(code)
    versions = "\n".join(pins_for(constraints, installed))
    command = pip(python, options.package, options.torch, built_here=not options.no_hashes)
    if code := with_file(versions, lambda name: [*command, "--constraint", name]):
        sys.exit(code)
    if not options.no_hashes and (others := unlocked(versions_of(python), read_pins(constraints))):
        print(f"Installed by version alone, without a hash: {', '.join(others)}")


def read_pins(constraints):
    """The lines `name==version` of a file with hashes.

    >>> read_pins("# make demo:\\na==1 \\\\\\n    --hash=sha256:ab\\nb==2\\n")
    ['a==1', 'b==2']
    """
    return re.findall(r"^[\w.-]+==[\w.+!-]+", constraints, re.MULTILINE)


def hashed_part(constraints, everything, own_build):
    """The packages of `make demo`, or of `make test` as well, with their hashes."""
    start = constraints.index(DEMO)
    middle = constraints.index(TEST)
    end = constraints.index("\n# ", middle)
    part = constraints[start : end if everything else middle]
    return re.sub(r"^torch==(.*\\\n)*.*\n", "", part, flags=re.MULTILINE) if own_build else part


def pins_for(constraints, installed):
    """The pinned versions; without torch's, where a usable one is there already."""
    keep = usable(installed)
    return [pin for pin in read_pins(constraints) if not (keep and pin.startswith("torch=="))]


def offers_own_build(python):
    """Whether pip would take a torch of another name than the index's, such as 2.13.0+cpu."""
    shown = subprocess.run(
        [python, "-m", "pip", "index", "versions", "torch", "--disable-pip-version-check"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    (pin,) = (p for p in read_pins(CONSTRAINTS.read_text("utf-8")) if p.startswith("torch=="))
    return f"{pin.partition('==')[2]}+" in shown.stdout


def unlocked(installed, pins):
    """What is installed at another version than the pinned one, or is not pinned at all.

    >>> unlocked({"Torch": "2.13.0+cpu", "tqdm": "4.1", "pip": "23"}, ["torch==2", "tqdm==4.1"])
    ['torch 2.13.0+cpu']
    """
    known = {normal(name): version for name, _, version in (pin.partition("==") for pin in pins)}
    ours = {"pip", "sightline"}
    return sorted(
        f"{normal(name)} {version}"
        for name, version in installed.items()
        if known.get(normal(name)) != version and normal(name) not in ours
    )


def normal(name):
    """The name of a package as an index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def versions_here():
    """The versions of the packages in this Python's own environment, by name."""
    return {
        item.metadata["Name"]: item.version
        for item in metadata.distributions()
        if Path(str(item.locate_file(""))).is_relative_to(sys.prefix)
    }


def versions_of(python):
    """The versions of an environment's packages, by name."""
    return dict(line.split("==") for line in _tell(python, "versions_here().items()"))


def torch_here():
    """The version of this Python's torch, or an empty text."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""


def torch_of(python):
    """The version of torch that an environment has."""
    return "".join(_tell(python, "[(torch_here(),)]"))


def _tell(python, rows):
    """What a Python says, asked with a function of this file: a line for each row."""
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); from install import *; "
    shown = subprocess.run(
        [python, "-c", f"{code}print(*('=='.join(row) for row in {rows}), sep='\\n')"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return shown.stdout.split()


def usable(version):
    """Whether Sightline works with a version of torch.

    >>> usable("2.13.0+cpu"), usable("2.1.0"), usable("")
    (True, False, False)
    """
    numbers = tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())
    return USABLE_TORCH[0] <= numbers < USABLE_TORCH[1]


def has_gpu():
    """Whether there is a driver for a GPU that torch's usual build for Linux can use."""
    return shutil.which("nvidia-smi") is not None or os.path.exists("/dev/nvidiactl")


def notice(installed, torch, gpu, system):
    """What to say before a large download. (Builds for macOS and Windows are small.)"""
    if usable(installed) or torch == "cpu" or gpu or system != "Linux":
        return ""
    return (
        f"No GPU was found. Torch's usual build comes with libraries for one: {SIZE} to fetch.\n"
        f"`make demo TORCH=cpu` takes PyTorch's build without them: {CPU_SIZE}. To change over, "
        "press Ctrl-C and run `make clean` first."
    )


def pip_hashed(python, requirements):
    """The command that installs just what a file names, if every hash is right."""
    return [*_pip_install(python), "--require-hashes", "--no-deps", "--requirement", requirements]


def pip(python, package, torch, built_here):
    """The command that installs a package, and what it needs that is not there yet."""
    command = _pip_install(python)
    if torch == "cpu":
        command += ["--extra-index-url", CPU_INDEX]
    if built_here:  # by the backend that was installed with its hash
        command.append("--no-build-isolation")
    return [*command, "--editable", package]


def _pip_install(python):
    """Its progress is shown in a terminal."""
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    return [python, "-m", "pip", "install", "--disable-pip-version-check", *quiet]


def with_file(content, command):
    """Run a command that is given the name of a file; its exit code."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        return subprocess.run(command(file.name)).returncode


def run(command):
    code = subprocess.run(command).returncode
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()
