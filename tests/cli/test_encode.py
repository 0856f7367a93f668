"""`sightline encode`, and that it may be killed at any moment."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from sightline.cli.main import cli
from sightline.data.scenes import make_scene_dataset, write_scenes

FILES = ("vectors.f16", "index.bin")
RECORD_BYTES, BATCH = 32, 2


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "scenes"
    write_scenes(make_scene_dataset(40, 10, 10, size=64), folder)
    return folder


def start(dataset, cache, *arguments):
    command = [sys.executable, "-c", "from sightline.cli.main import main; main()", "encode"]
    command += [str(dataset), "--cache", str(cache), "--size", "64", "--batch-size", str(BATCH)]
    return subprocess.Popen(
        [*command, "--workers", "1", "--json", *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, _ = process.communicate(timeout=120)
    return json.loads(output)


def contents(cache):
    (folder,) = (path for path in cache.iterdir() if path.is_dir())
    return {name: (folder / name).read_bytes() for name in FILES}


def kill_after(process, cache, batches):
    """Wait until some batches are in the index, then `kill -9`."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        index = next(cache.glob("*/index.bin"), None)
        if index is not None and index.stat().st_size >= batches * BATCH * RECORD_BYTES:
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)  # its workers end too, else they would hold the pipe
    assert process.returncode == -signal.SIGKILL, "it ended before it could be killed"


@pytest.mark.process
def test_a_killed_run_goes_on_to_the_same_bytes(scenes, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    result = finish(start(scenes, whole))
    assert result["added"] == 60
    kill_after(start(scenes, killed), killed, batches=3)
    before = contents(killed)
    assert 0 < len(before["index.bin"]) < 60 * RECORD_BYTES
    result = finish(start(scenes, killed))
    assert result["added"] == 60 - len(before["index.bin"]) // RECORD_BYTES
    assert contents(killed) == contents(whole)


def test_precision(scenes, tmp_path):
    arguments = ["encode", str(scenes), "--cache", str(tmp_path), "--size", "64", "--split", "dev"]
    folders = []
    for precision in ((), ("--precision", "32"), ("--precision", "bf16")):
        result = CliRunner().invoke(cli, [*arguments, *precision, "--workers", "0", "--json"])
        folders.append(json.loads(result.stdout)["cache"])
    assert folders[0] == folders[1]
    assert folders[2] == folders[0] + "-bf16"


def test_bad_pictures_are_named_and_left_out(tmp_path):
    write_scenes(make_scene_dataset(3, 1, 1, size=64), tmp_path / "scenes")
    (tmp_path / "scenes" / "images" / "train-000001.png").write_text("not a picture")
    (tmp_path / "scenes" / "images" / "test-000000.png").unlink()
    arguments = ["encode", str(tmp_path / "scenes"), "--cache", str(tmp_path / "cache"), "--json"]
    arguments += ["--size", "64", "--workers", "0", "--split", "train", "--split", "test"]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["added"] == 2
    lines = result.stderr.splitlines()
    named = [line for line in lines if line.startswith("sightline: left out: ")]
    assert len(named) == len(report["errors"]) == 2
    assert "train-000001.png" in named[0]
    assert "test-000000.png" in named[1]
