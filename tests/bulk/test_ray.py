"""Ray: the same rows as one process, on a cluster of two nodes of which one is lost."""

import contextlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sightline
from sightline.bulk.records import Failure
from sightline.errors import ConfigError
from two_machines import Machine, two_machines

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("ray")]

PORT = 26379


def rows_of(folder: Path) -> dict[str, dict]:
    from pyarrow import parquet

    rows = [
        row
        for part in sorted(folder.glob("part-*.parquet"))
        for row in parquet.read_table(part).to_pylist()
    ]
    assert len({row["path"] for row in rows}) == len(rows), "a picture was captioned twice"
    return {row["path"]: row for row in rows}


def assert_same(rows: dict[str, dict], expected: list[dict]) -> None:
    """The same columns and captions; numbers may differ where batches do."""
    assert set(rows) == {row["path"] for row in expected}
    for row in expected:
        other = rows[row["path"]]
        assert set(other) == set(row)
        assert (other["caption"], other["sha256"]) == (row["caption"], row["sha256"])
        assert other["model"] == row["model"]
        assert other["log_probability"] == pytest.approx(row["log_probability"], abs=1e-4)
        assert [w["verdict"] for w in other["words"]] == [w["verdict"] for w in row["words"]]


def expected_rows(fitted, album: Path, tmp_path: Path) -> list[dict]:
    output = tmp_path / "one-process.jsonl"
    sightline.caption_all(album, output, captioner=fitted, check=True, batch_size=2)
    return [json.loads(line) for line in output.read_text("utf-8").splitlines()]


def driver(address: str, album: Path, output: Path, checkpoint: Path) -> list[str]:
    small_parts = "from sightline.bulk import ray_engine; ray_engine._PART_ROWS = 4"
    main = f"{small_parts}; from sightline.cli.main import main; main()"
    program = [sys.executable, "-c", main, "caption", str(album), "-o", str(output)]
    options = ["--model", str(checkpoint), "--check", "--batch-size", "2"]
    return [*program, *options, "--engine", "ray", "--address", address]


@contextlib.contextmanager
def two_nodes() -> Iterator[tuple[Machine, Machine, dict[str, str]]]:
    """A cluster of two machines, and the environment of what runs on them."""
    environment = os.environ | {"RAY_DISABLE_IMPORT_WARNING": "1", "OMP_NUM_THREADS": "1"}
    environment |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_health_check_timeout_ms": "3000"}
    environment |= {"RAY_worker_niceness": "0"}
    environment |= {"RAY_AUTH_MODE": "disabled"}
    scratch = tempfile.mkdtemp(prefix="ray-")  # short: paths of sockets must be
    try:
        with two_machines() as (first, second):
            start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus=2"]
            start += ["--object-store-memory=150000000", "--disable-usage-stats"]
            head = [*start, "--head", f"--node-ip-address={first.address}", f"--port={PORT}"]
            head += ["--include-dashboard=false", f"--temp-dir={scratch}"]
            worker = [*start, f"--address={first.address}:{PORT}"]
            worker += [f"--node-ip-address={second.address}"]
            for machine, command in ((first, head), (second, worker)):
                started = subprocess.run(
                    [*machine.run, *command],
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=240,
                )
                assert started.returncode == 0, started.stdout + started.stderr
            yield first, second, environment
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def captioners_of(machine: Machine) -> int:
    """How many actors caption on a machine: Ray's processes are called after what they do."""
    titles = []
    for pid in machine.processes():
        with contextlib.suppress(OSError):
            titles.append(Path(f"/proc/{pid}/cmdline").read_text())
    return sum("Captions" in title for title in titles)


def test_two_nodes_one_lost_and_a_killed_driver(fitted, fitted_checkpoint, album, tmp_path):
    for number in range(60):  # enough to be killed twice before the end
        shutil.copy(album / "cat.jpg", album / f"more-{number}.jpg")
    (album / "broken.jpg").write_bytes((album / "cat.jpg").read_bytes()[:2000])
    expected = expected_rows(fitted, album, tmp_path)
    output = tmp_path / "parts"
    with two_nodes() as (first, second, environment):
        address = f"{first.address}:{PORT}"
        command = [*first.run, *driver(address, album, output, fitted_checkpoint)]
        killed = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 240
        while not list(output.glob("part-*.parquet")) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert [captioners_of(machine) > 0 for machine in (first, second)] == [True, True]
        killed.kill()
        killed.wait()
        before = {part: part.read_bytes() for part in output.glob("part-*.parquet")}
        assert before, "the driver wrote a part before it was killed"
        again = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        parts = len(before)
        while len(list(output.glob("part-*.parquet"))) <= parts and again.poll() is None:
            time.sleep(0.02)
        assert second.kill() > 0, "the second node was running"
        _, errors = again.communicate(timeout=400)
    assert again.returncode in (0, 1), errors  # 1 if the damaged picture was left for it
    assert all(part.read_bytes() == content for part, content in before.items())
    assert_same(rows_of(output), expected)
    failures = (tmp_path / "parts.failures.jsonl").read_text().splitlines()
    assert [Path(json.loads(line)["path"]).name for line in failures] == ["broken.jpg"]
    assert not (output / ".unfinished").exists()


def test_one_machine_is_a_cluster(fitted, album, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    expected = expected_rows(fitted, album, tmp_path)
    ray.init(
        num_cpus=2,
        object_store_memory=150_000_000,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    try:
        options = {"captioner": fitted, "engine": "ray", "check": True, "batch_size": 3}
        (tmp_path / "list.csv").write_text('path\n""\n')
        pictures = [tmp_path / "list.csv", album]
        summary = sightline.caption_all(pictures, tmp_path / "parts", **options)
        assert (summary.captioned, summary.failed) == (7, 1)
        assert_same(rows_of(tmp_path / "parts"), expected)
        import pandas

        assert len(pandas.read_parquet(tmp_path / "parts")) == 7
        nothing = sightline.caption_all(pictures, tmp_path / "parts", **options)
        assert (nothing.captioned, nothing.failed) == (0, 0)
        assert nothing.skipped == 8
    finally:
        ray.shutdown()


def test_pictures_in_tables_make_small_batches_and_waves(monkeypatch):
    from sightline.bulk import ray_engine
    from sightline.bulk.items import Item

    monkeypatch.setattr(ray_engine, "_BATCH_BYTES", 100)
    monkeypatch.setattr(ray_engine, "_WAVE_BYTES", 300)
    files = [Item(f"{n}.jpg", "", Path("a.jpg")) for n in range(1000)]
    ((*_, last),) = ray_engine._waves(iter(files), 4)
    assert len(last) == 4
    inside = [Item(str(n), "", content=bytes(50)) for n in range(20)]
    waves = list(ray_engine._waves(iter(inside), 4))
    assert [[len(batch) for batch in wave] for wave in waves] == [*3 * [[2, 2, 2]], [2]]
    assert [item for wave in waves for batch in wave for item in batch] == inside


def test_a_failure_of_the_list_is_one_of_the_job():
    from sightline.bulk.ray_engine import Decoder
    from sightline.encoders.preprocessing import Preprocessing

    bad = Failure("a.csv, row 2", "source", "a.csv: row 2 names no picture")
    row = Decoder(Preprocessing(64).to_json())({"items": pickle.dumps([bad])})
    assert json.loads(row["failures"]) == [bad.row()]
    assert pickle.loads(row["pictures"]) == []


def test_wrong_uses(captioner, album, tmp_path):
    with pytest.raises(ConfigError, match="leave out --format"):
        sightline.caption_all(
            album, tmp_path / "a.csv", captioner=captioner, engine="ray", format="csv"
        )
    with pytest.raises(ConfigError, match="no engine is called 'rye'"):
        sightline.caption_all(album, tmp_path / "a.csv", captioner=captioner, engine="rye")
