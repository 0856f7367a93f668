"""Killed in the middle of reviewing 500 pictures: everything decided before is there."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from sightline.review.collection import Review

pytestmark = pytest.mark.process


def test_nothing_that_was_decided_is_lost(tmp_path, examples):
    folder = tmp_path / "photos"
    folder.mkdir()
    shutil.copy(examples / "coffee.jpg", folder / "p000.jpg")
    for number in range(1, 500):
        (folder / f"p{number:03d}.jpg").hardlink_to(folder / "p000.jpg")
    command = [sys.executable, "-m", "sightline", "serve", str(folder), "--review", "--port", "0"]
    acknowledged: dict[int, tuple[str, str | None]] = {}
    begun: dict[int, tuple[str, str | None]] = {}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}
    ) as server:
        address = ""
        for line in server.stdout:
            if match := re.match(r"Review: (http://\S+)", line):
                address = match[1]
                break
        with httpx.Client(timeout=60) as client:
            for _ in range(600):
                try:
                    ids = client.get(f"{address}/order?order=name").json()["ids"]
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            assert len(ids) == 500
            threading.Timer(4, os.kill, (server.pid, signal.SIGKILL)).start()
            try:
                for id in ids:
                    state = "rejected" if id % 5 == 0 else "edited"
                    text = None if state == "rejected" else f"written by hand {id}"
                    begun[id] = (state, text)
                    body = {"id": id, "state": state, "text": text, "after": 0}
                    client.post(f"{address}/decisions", json=body).raise_for_status()
                    acknowledged[id] = (state, text)
                    time.sleep(0.005)  # a very fast reviewer, who is not done when it happens
            except httpx.TransportError:
                pass
        assert server.wait(30) == -signal.SIGKILL
    assert 5 < len(acknowledged) < 500
    with Review(folder) as review:  # nothing keeps it locked
        entries = {entry.id: (entry.state, entry.text) for entry in review.entries()}
        kept = {id: decided for id, decided in entries.items() if decided[0] != "open"}
        assert acknowledged.items() <= kept.items()
        assert kept.items() <= begun.items()  # at most the one in flight besides
        assert review.database.rows("PRAGMA integrity_check") == [("ok",)]
        assert review.decide(ids[-1], "edited", "and on it goes").text == "and on it goes"
