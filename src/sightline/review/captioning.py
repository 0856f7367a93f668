"""Captions for a review, made in the background while a person works."""

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from sightline.bulk.items import Item
from sightline.bulk.job import Job
from sightline.bulk.reading import Opened
from sightline.bulk.records import Failure, Record
from sightline.bulk.sink import Sink
from sightline.bulk.sources import open_source
from sightline.captioner import Captioner
from sightline.errors import SightlineError
from sightline.progress import watched
from sightline.review.collection import Review

BATCH = 8  # small, so that the page fills and whoever asks meanwhile does not wait long


class _StoppedError(Exception):
    """The captioning was told to stop."""


class ReviewSink(Sink):
    """Takes a job's captions into a review, batch by batch."""

    def __init__(self, review: Review, stop: threading.Event | None = None) -> None:
        self.review, self.stop = review, stop or threading.Event()
        self.job = ""

    def begin(self, job: dict[str, Any]) -> int:
        self.job = hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()[:16]
        return 0

    def has(self, item: Item) -> bool:
        if self.stop.is_set():
            raise _StoppedError
        return self.review.is_captioned(item, self.job)

    def write(self, records: Sequence[Record], failures: Sequence[Failure]) -> None:
        self.review.write(records, failures, self.job)
        if self.stop.is_set():
            raise _StoppedError


class _PausableJob(Job):
    """A job that ends amid a batch when it is told to stop."""

    stop: threading.Event

    def caption(self, pictures: Sequence[Opened]) -> list[Record]:
        with watched(self._watch):  # here, for batches are captioned by several threads
            return super().caption(pictures)

    def _watch(self, done: int, total: int) -> None:
        if self.stop.is_set():
            raise _StoppedError


class Captioning:
    """A thread that captions what a review has not captioned yet.

    The captioner is loaded there by `load`, so that the page opens at once. Words are checked, if
    the captioner can.
    """

    def __init__(self, review: Review, load: Callable[[], Captioner] = Captioner.load) -> None:
        self.review, self.load = review, load
        self.error: str | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin, or go on; does nothing while it runs."""
        if not self.is_running:
            self._stop.clear()
            self.error = None
            self._thread = threading.Thread(target=self._run, name="captioning", daemon=True)
            self._thread.start()

    def stop(self, wait: float | None = None) -> None:
        """End amid the batch in hand; what is captioned stays."""
        self._stop.set()
        if self._thread is not None and wait is not None:
            self._thread.join(wait)

    def _run(self) -> None:
        try:
            captioner = self.load()
            options = {"check": can_check(captioner)}
            job = _PausableJob(captioner, BATCH, options=options)
            job.stop = self._stop
            with contextlib.suppress(_StoppedError):
                job.run(open_source(self.review.folder), ReviewSink(self.review, self._stop))
        except SightlineError as error:
            self.error = str(error)
        except Exception as error:  # a thread must not die unheard
            self.error = f"a bug in Sightline ({type(error).__name__}: {error})"


def can_check(captioner: Captioner) -> bool:
    """Whether a captioner can say which of its words the picture supports."""
    try:
        _ = captioner.support_classifier
    except SightlineError:
        return False
    return True
