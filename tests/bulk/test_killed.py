"""Commands that caption and check, killed by SIGKILL: their output is as if they never were."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sightline

pytestmark = pytest.mark.process


def start(album: Path, output: Path, checkpoint: Path, form: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "sightline", "caption", str(album), "-o", str(output)]
    command += ["--format", form, "--model", str(checkpoint), "--check", "--batch-size", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def contents(output: Path) -> dict[str, bytes]:
    if output.is_file():
        return {"": output.read_bytes()}
    return {path.name: path.read_bytes() for path in sorted(output.rglob("*"))}


@pytest.mark.parametrize("form", ["csv", "parquet-parts"])
def test_checked_captions_are_the_same_after_kills(
    fitted, fitted_checkpoint, album, tmp_path, form
):
    for number in range(24):
        shutil.copy(album / "cat.jpg", album / f"more-{number}.jpg")
    (album / "broken.jpg").write_bytes((album / "cat.jpg").read_bytes()[:2000])
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    journal = killed / ".unfinished" / "journal.jsonl"
    if form == "csv":
        journal = tmp_path / "killed.unfinished" / "journal.jsonl"
    options = {"captioner": fitted, "format": form, "check": True, "batch_size": 2}
    assert sightline.caption_all(album, whole, **options).failed == 1
    for batches in (3, 9):
        process = start(album, killed, fitted_checkpoint, form)
        while not journal.exists() or journal.read_bytes().count(b"\n") < batches:
            assert process.poll() is None, process.communicate()
            time.sleep(0.001)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert journal.exists(), "it was killed before its end"
    process = start(album, killed, fitted_checkpoint, form)
    assert process.wait(300) in (0, 1), process.communicate()
    assert contents(killed) == contents(whole)
    failures = [tmp_path / f"{name}.failures.jsonl" for name in ("killed", "whole")]
    assert failures[0].read_bytes() == failures[1].read_bytes()
    assert form != "csv" or b'""verdict"": ""' in whole.read_bytes()
