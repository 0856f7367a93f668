"""What `make` installs: the small torch if asked for, a notice if not, what is there already."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("install", ROOT / "tools" / "install.py")
assert _spec is not None
assert _spec.loader is not None
install = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(install)


def test_the_index_of_pytorch_is_contacted_only_if_asked() -> None:
    small = install.pip("python", ".", "constraints.txt", "cpu")
    usual = install.pip("python", ".", "constraints.txt", "")
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


def test_an_installed_torch_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert "\ntorch==" in install.constraints_for("")
    assert "\ntorch==" in install.constraints_for("2.1.0")  # too old to be used
    kept = install.constraints_for("2.9.1+cu126")
    assert "torch==" not in kept
    assert "\ntqdm==" in kept


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
    assert "--torch" not in commands()


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
    assert (install.CPU_INDEX in told) == (torch == "cpu")
