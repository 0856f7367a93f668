"""A server that is killed while it captions a folder and a person decides about its pictures.

It is started again until every picture has a caption and a decision. What was acknowledged must be
there after each kill, and the table of the whole review must have the bytes of one never killed.
"""

import re
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from random import Random

import httpx

from attack.commands import HANGS_AFTER, Command
from attack.kills import Workshop
from attack.law import Failure

NAME = "the server"
SHARE = 0.15  # of all kills
Decisions = dict[int, tuple[str, str | None]]


class Reviewer(threading.Thread):
    """A person who decides about one picture after another, while the server is there.

    `acknowledged` has what the server said it kept, in this run of it and in earlier ones.
    """

    def __init__(self, server: Command, acknowledged: Decisions) -> None:
        super().__init__(daemon=True)
        self.server, self.acknowledged = server, acknowledged
        self.table: bytes | None = None  # of the whole review, once it is complete
        self.lost: str | None = None
        self._patience = time.monotonic() + HANGS_AFTER
        self.start()

    def run(self) -> None:
        try:
            address = self._address()
            with httpx.Client(base_url=address, timeout=HANGS_AFTER) as client:
                ids = self._answer(client, "/order?order=name")["ids"]
                query = ",".join(map(str, ids))
                entries = self._answer(client, f"/entries?ids={query}")
                kept = {e["id"]: (e["state"], e["text"]) for e in entries if e["state"] != "open"}
                if missing := self.acknowledged.items() - kept.items():
                    self.lost = f"{len(missing)} decisions that were acknowledged are lost"
                    return
                for id in ids:
                    if id not in kept:
                        self._decide(client, id)
                while (state := self._answer(client, "/state"))["captioning"]:
                    time.sleep(0.02)
                if state["error"] is not None:
                    self.lost = f"captioning failed: {state['error']}"
                    return
                self.table = client.get("/tables/jsonl").content
        except httpx.TransportError:
            return  # it was killed

    def _address(self) -> str:
        while self.server.log.exists() and time.monotonic() < self._patience:
            starts = self.server.log.read_text(errors="replace").rpartition("\n--- start\n")[2]
            if match := re.search(r"Review: (http://\S+)", starts):
                return match[1]
            time.sleep(0.02)
        raise httpx.TransportError("it never listened")

    def _answer(self, client: httpx.Client, path: str) -> dict:
        return client.get(path).raise_for_status().json()

    def _decide(self, client: httpx.Client, id: int) -> None:
        decided = ("rejected", None) if id % 5 == 0 else ("edited", f"written by hand {id}")
        body = {"id": id, "state": decided[0], "text": decided[1], "after": 0}
        client.post("/decisions", json=body).raise_for_status()
        self.acknowledged[id] = decided


def kill_server(workshop: Workshop, kills: int, random: Random) -> tuple[int, list[Failure]]:
    """Kill a server so many times, over as many reviews as that takes; how often, and failures."""
    folder = workshop.folder / "server"
    try:
        _, expected, seconds = _review(workshop, folder / "whole", None, random)
    except RuntimeError as error:
        return 0, [Failure(NAME, f"without a kill: {error}")]
    done, attempt, failures = 0, 0, []
    while done < kills:
        attempt += 1
        try:
            killed, table, _ = _review(workshop, folder / f"killed-{attempt}", seconds, random)
            done += killed
            if table != expected:
                failures.append(Failure(f"{NAME} {attempt}", "another table than one never killed"))
        except RuntimeError as error:
            failures.append(Failure(f"{NAME} {attempt}", str(error)))
            done += 1
        print(f"\r{NAME}: {done} kills, {len(failures)} failed", end="", file=sys.stderr)
    print(file=sys.stderr)
    return done, failures


def _review(
    workshop: Workshop, folder: Path, seconds: float | None, random: Random
) -> tuple[int, bytes, float]:
    """Kills, the table of a review that was killed so often, and processor seconds of its end."""
    photos = folder / "photos"
    photos.mkdir(parents=True)
    for picture in sorted(workshop.scenes.rglob("*.png")):
        shutil.copyfile(picture, photos / picture.name)
    arguments = [
        "serve",
        str(photos),
        "--review",
        "--port",
        "0",
        "--model",
        str(workshop.captioner),
    ]
    acknowledged: Decisions = {}
    kills = 0
    while True:
        log = folder / "log.txt"
        with log.open("a") as file:
            file.write("\n--- start\n")
        server = Command(arguments, log)
        reviewer = Reviewer(server, acknowledged)
        until = float("inf") if seconds is None else random.uniform(0, 1.2) * seconds
        while reviewer.is_alive() and server.poll() is None and server.work_done() < until:
            time.sleep(0.01)
        work = server.work_done()
        is_killed = reviewer.is_alive()
        ended_by_itself = server.poll() is not None
        server.kill(random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
        reviewer.join(HANGS_AFTER)
        if ended_by_itself or server.status not in (-signal.SIGKILL, -signal.SIGTERM, 143, 0):
            raise RuntimeError(f"exit code {server.status}: {server.last_line()}")
        if reviewer.lost is not None:
            raise RuntimeError(reviewer.lost)
        if reviewer.table is not None:
            return kills, reviewer.table.replace(str(folder).encode(), b""), work
        if not is_killed:
            raise RuntimeError(f"no answer: {server.last_line()}")
        kills += 1
