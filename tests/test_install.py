"""What `make` installs: checked by hashes; the small torch if asked for, and a notice if not."""

import doctest
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))
import install  # noqa: E402
import lock  # noqa: E402

CONSTRAINTS = install.CONSTRAINTS.read_text("utf-8")


def test_the_index_of_pytorch_is_contacted_only_if_asked() -> None:
    small = install.pip("python", ".", "cpu", built_here=True)
    usual = install.pip("python", ".", "", built_here=True)
    assert small[small.index("--extra-index-url") + 1] == install.CPU_INDEX
    assert not any("index" in argument for argument in usual)
    assert [argument for argument in small if argument not in usual] == [
        "--extra-index-url",
        install.CPU_INDEX,
    ]


@pytest.mark.parametrize(
    ("installed", "torch", "gpu", "system", "said"),
    [
        ("", "", False, "Linux", True),
        ("", "cpu", False, "Linux", False),
        ("", "", True, "Linux", False),
        ("", "", False, "Darwin", False),
        ("2.13.0", "", False, "Linux", False),
        ("1.13.0", "", False, "Linux", True),
    ],
)
def test_the_size_is_said_before_a_large_download(
    installed: str, torch: str, gpu: bool, system: str, said: bool
) -> None:
    line = install.notice(installed, torch, gpu, system)
    assert bool(line) == said
    assert not said or ("TORCH=cpu" in line and install.SIZE in line and install.CPU_SIZE in line)


def test_the_sizes_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \| ([\d,]+) \|$", page, re.MULTILINE)
    fetched = {part: float(megabytes.replace(",", "")) for part, megabytes in rows}
    assert f"{fetched['torch, for a processor'] / 1000:.1f} GB" == install.CPU_SIZE
    assert f"{fetched['torch, with libraries for a GPU'] / 1000:.1f} GB" == install.SIZE


def test_an_installed_torch_is_kept() -> None:
    for replaced in ("", "2.1.0"):  # none, and one that is too old to be used
        assert any(pin.startswith("torch==") for pin in install.pins_for(CONSTRAINTS, replaced))
    kept = install.pins_for(CONSTRAINTS, "2.9.1+cu126")
    assert not any(pin.startswith("torch==") for pin in kept)
    assert any(pin.startswith("tqdm==") for pin in kept)


def test_the_versions_of_torch_are_those_of_the_package() -> None:
    (low, high) = re.findall(r'"torch>=([\d.]+),<([\d.]+)"', (ROOT / "pyproject.toml").read_text())[
        0
    ]
    assert install.usable(low)
    assert not install.usable(high + ".0")


def test_make_passes_on_what_is_asked_for() -> None:
    def commands(*arguments: str) -> str:
        make = ["make", "--dry-run", "--always-make", "demo", *arguments]
        return subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "--torch cpu" in commands("TORCH=cpu")
    assert "--no-hashes" in commands("HASHES=no")
    assert "--torch" not in commands()
    assert "--no-hashes" not in commands()


@pytest.mark.parametrize("torch", ["cpu", ""])
def test_the_environment_is_told_of_the_index_only_if_asked(tmp_path: Path, torch: str) -> None:
    """The whole program, with an environment whose Python only writes down what it is told."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/told\n')
    python.chmod(0o755)
    command = [sys.executable, "tools/install.py", str(tmp_path), ".[train]", "--torch", torch]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    told = (tmp_path / "told").read_text()
    assert ".[train]" in told
    assert told.index("--require-hashes") < told.index("--editable")
    assert (install.CPU_INDEX in told) == (torch == "cpu")


def test_every_package_has_hashes() -> None:
    entries = re.split(r"^(?=[\w.-]+==)", CONSTRAINTS, flags=re.MULTILINE)[1:]
    assert len(entries) == len(install.read_pins(CONSTRAINTS)) > 200
    without = [each.split()[0] for each in entries if not re.search(r"sha256:[0-9a-f]{64}\b", each)]
    assert without == []


def test_every_package_that_is_needed_is_locked() -> None:
    """As the installed ones say: a new dependency needs a line in constraints.txt."""
    demo, everything = (
        {install.normal(pin.split("==")[0]) for pin in install.read_pins(part)}
        for part in (
            install.hashed_part(CONSTRAINTS, everything=False, own_build=False),
            install.hashed_part(CONSTRAINTS, everything=True, own_build=False),
        )
    )

    def needed(*requirements: str) -> set[str]:
        """Without what comes with a torch for GPUs, which constraints.txt leaves to torch."""
        names = lock.needed(list(requirements))
        return {name for name in names if not install.GPU_LIBRARY.match(name)}

    assert needed("sightline[train,heic]", *lock.BUILD) <= demo
    assert needed("sightline[dev]") <= everything
    assert "pytest" in everything - demo, "the demo is installed without what tests need"
    assert "wandb" not in everything


def test_a_torch_of_its_own_name_is_left_to_pip() -> None:
    whole = install.hashed_part(CONSTRAINTS, everything=False, own_build=False)
    rest = install.hashed_part(CONSTRAINTS, everything=False, own_build=True)
    assert [p for p in install.read_pins(whole) if p not in install.read_pins(rest)] == [
        pin for pin in install.read_pins(whole) if pin.startswith("torch==")
    ]
    assert rest.count("sha256:") < whole.count("sha256:")


def test_a_file_with_another_hash_is_not_installed(tmp_path: Path) -> None:
    wheel = tmp_path / "parcel-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("parcel.py", "")
        archive.writestr("parcel-1.dist-info/METADATA", "Name: parcel\nVersion: 1\n")
        archive.writestr("parcel-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("parcel-1.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    sources = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    target = tmp_path / "installed"
    for tampered in (True, False):
        line = f"parcel==1 --hash=sha256:{digest[::-1] if tampered else digest}\n"
        (tmp_path / "requirements.txt").write_text(line)
        done = subprocess.run(
            install.pip_hashed(sys.executable, str(tmp_path / "requirements.txt")),
            env={**os.environ, **sources, "PIP_TARGET": str(target)}, capture_output=True,
        )  # fmt: skip
        assert (done.returncode != 0) == tampered, done.stderr
        assert (target / "parcel.py").exists() != tampered


@pytest.mark.parametrize("tool", [install, lock])
def test_the_examples_of_the_tools_are_right(tool) -> None:
    results = doctest.testmod(tool)
    assert results.attempted > 0
    assert results.failed == 0
