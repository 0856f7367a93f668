"""Set up a virtual environment with Sightline in it, for the Makefile.

    python3 tools/install.py .venv '.[train]' [--torch cpu]

Torch is the large part. One that the given Python has already is used. `--torch cpu` takes the
build without libraries for a GPU from PyTorch's own index, which is not contacted otherwise.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
USABLE_TORCH = ((2, 6), (3, 0))  # as in pyproject.toml
# What torch and all that it needs are to fetch (docs/install.md).
SIZE, CPU_SIZE = "2.7 GB", "0.2 GB"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", help="folder of the virtual environment")
    parser.add_argument("package", help="what to install in it, such as .[train]")
    parser.add_argument("--torch", default="", choices=["", "cpu"])
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
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write(constraints_for(installed))
        constraints.flush()
        run(pip(python, options.package, constraints.name, options.torch))


def torch_here():
    """The version of this Python's torch, or an empty text."""
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""


def torch_of(python):
    """The version of torch that an environment has."""
    code = f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import install; "
    shown = subprocess.run(
        [python, "-c", code + "print(install.torch_here())"], stdout=subprocess.PIPE, text=True
    )
    return shown.stdout.strip()


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


def constraints_for(installed):
    """The pinned versions; without torch's, where a usable one is there already."""
    with open("constraints.txt", encoding="utf-8") as file:
        lines = file.readlines()
    return "".join(line for line in lines if not (usable(installed) and line.startswith("torch==")))


def pip(python, package, constraints, torch):
    """The command that installs a package; its progress is shown in a terminal."""
    command = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    if not sys.stdout.isatty():
        command.append("--quiet")
    if torch == "cpu":
        command += ["--extra-index-url", CPU_INDEX]
    return [*command, "--constraint", constraints, "--editable", package]


def run(command):
    code = subprocess.run(command).returncode
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()
