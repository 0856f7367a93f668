"""Caption any number of pictures: read ahead, batch by batch, each on disk before the next."""

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from sightline.bulk.items import Item
from sightline.bulk.reading import Opened, open_item
from sightline.bulk.records import Failure, Record, content_size, model_name
from sightline.bulk.sink import Sink, pending
from sightline.bulk.sources import Source
from sightline.captioner import Captioner
from sightline.encoded_picture import EncodedPicture
from sightline.encoders.encode import in_parallel
from sightline.errors import DataError, PictureError
from sightline.pictures import FILE_BYTES
from sightline.progress import progress
from sightline.version import __version__

BATCH = 32
WORKERS = 2  # threads that read and decode; decoding leaves Python's lock to others
_LANES = 4  # batches captioned at once, where there are as many cores
_AHEAD_BYTES = FILE_BYTES  # of pictures whose bytes came with the list, and wait to be opened


@dataclass
class Summary:
    """What a job did."""

    captioned: int = 0
    failed: int = 0
    skipped: int = 0  # done already, unchanged, or named twice
    marked: int = 0  # captions with a word that is doubtful or not supported
    seconds: float = 0.0
    unreadable: Counter[str] = field(default_factory=Counter)  # suffixes of unknown formats

    def count_format(self, failure: Failure) -> None:
        """Count a picture whose format cannot be read, under its suffix."""
        if failure.kind == "format":
            self.unreadable[PurePath(failure.name).suffix.lower() or "no suffix"] += 1

    def counts(self, check: bool) -> dict[str, int]:
        """What a progress bar shows beside the pictures that are done."""
        counts = {"skipped": self.skipped, "failed": self.failed}
        return counts | ({"marked": self.marked} if check else {})

    def __str__(self) -> str:
        rate = self.captioned / self.seconds if self.seconds else 0.0
        parts = [f"{self.captioned:,} captioned"]
        parts += [f"{self.skipped:,} skipped (done already)"] if self.skipped else []
        parts += [f"{self.marked:,} marked"] if self.marked else []
        parts += [f"{self.failed:,} failed"] if self.failed else []
        formats = [f"{count:,} {suffix}" for suffix, count in sorted(self.unreadable.items())]
        parts += [f"in formats that cannot be read here: {', '.join(formats)}"] if formats else []
        return f"{', '.join(parts)}; {rate:.1f} pictures/s"


class Job:
    """A captioner, and how it is to caption."""

    def __init__(
        self,
        captioner: Captioner,
        batch_size: int = BATCH,
        workers: int = WORKERS,
        avoid_unsupported: bool = False,
        options: dict[str, Any] | None = None,
        details: bool = True,
    ) -> None:
        self.captioner, self.batch_size, self.workers = captioner.packed(), batch_size, workers
        self.avoid_unsupported, self.options = avoid_unsupported, options or {}
        self.details = details  # whether words come with all that `Captioner.captions` can say
        self.model = model_name(captioner)

    def settings(self) -> dict[str, Any]:
        """What rows depend on, apart from the pictures: two jobs that differ in it do not mix."""
        options = {name: value for name, value in self.options.items() if value is not None}
        return {
            "model": self.model,
            "version": __version__,
            "batch_size": self.batch_size,
            "avoid_unsupported": self.avoid_unsupported,
            **{name: list(v) if isinstance(v, tuple) else v for name, v in options.items()},
        }

    def run(self, source: Source, sink: Sink, show_progress: bool = False) -> Summary:
        """Caption what a sink does not have."""
        summary, began = Summary(), time.monotonic()
        if self.options.get("check"):
            _ = self.captioner.support_classifier  # its absence is seen before anything is written
        sink.begin(self.settings())
        total = source.count() if show_progress else None
        bar = progress(None, "captioning", total=total, unit="picture", show=show_progress)
        with bar:
            batches = self._batches(self._opened(source, sink, summary, bar), summary)
            lanes = 1 if self.captioner.encoder.one_at_a_time else _LANES
            for records, failures in in_parallel(self._caption_batch, batches, lanes):
                sink.write(records, failures)
                summary.captioned += len(records)
                summary.marked += sum(record.is_marked for record in records)
                summary.seconds = time.monotonic() - began
                bar.update(len(records) + len(failures))
                bar.set_postfix(summary.counts(bool(self.options.get("check"))), refresh=False)
            sink.finish()
        summary.seconds = time.monotonic() - began
        return summary

    def _opened(
        self, source: Source, sink: Sink, summary: Summary, bar: Any
    ) -> Iterator[Opened | Failure]:
        """Pictures that are to be captioned, in order, read by threads ahead of the captioner."""

        def skip() -> None:
            summary.skipped += 1
            bar.update()

        def open_new(item: Item | Failure) -> Opened | Failure | None:
            if isinstance(item, Failure):
                return item
            opened = self.open(item, sink.keeps_content)
            unchanged = isinstance(opened, Opened) and sink.has_unchanged(item, opened.sha256)
            return None if unchanged else opened

        with ThreadPoolExecutor(self.workers) as pool:
            waiting: deque[tuple[int, Future[Opened | Failure | None]]] = deque()
            held = 0  # bytes that came with those that wait

            def ahead(most: int, most_bytes: int) -> Iterator[Opened | Failure]:
                """The first of those that wait, until so many are left."""
                nonlocal held
                while len(waiting) > most or held > most_bytes:
                    size, future = waiting.popleft()
                    held -= size
                    if (first := future.result()) is None:
                        skip()
                    else:
                        yield first

            for item in pending(source, sink, skip):
                waiting.append((content_size(item), pool.submit(open_new, item)))
                held += waiting[-1][0]
                yield from ahead(2 * self.batch_size, _AHEAD_BYTES)
            yield from ahead(0, 0)

    def open(self, item: Item, keep_content: bool = False) -> Opened | Failure:
        """Read, hash and prepare a picture; or say what is wrong with it."""
        encoder = self.captioner.encoder
        if encoder.sees_pixels:
            return open_item(item, encoder.preprocessing, keep_content)
        try:  # features are looked up by the picture's name
            return Opened(item, "", self.captioner.encode(item.path or item.name))
        except (PictureError, DataError) as error:
            return Failure(item.name, "missing", str(error))

    def _batches(
        self, pictures: Iterator[Opened | Failure], summary: Summary
    ) -> Iterator[tuple[list[Opened], list[Failure]]]:
        """Whole batches of pictures, each with the failures met on the way to it."""
        batch: list[Opened] = []
        failures: list[Failure] = []
        for picture in pictures:
            if isinstance(picture, Failure):
                failures.append(picture)
                summary.failed += 1
                summary.count_format(picture)
            else:
                batch.append(picture)
            if len(batch) == self.batch_size:
                yield batch, failures
                batch, failures = [], []
        if batch or failures:
            yield batch, failures

    def _caption_batch(
        self, batch: tuple[list[Opened], list[Failure]]
    ) -> tuple[list[Record], list[Failure]]:
        return self.caption(batch[0]), batch[1]

    def caption(self, pictures: Sequence[Opened]) -> list[Record]:
        """The captions of pictures that were opened."""
        if not pictures:
            return []
        encoded = self._encode(pictures)
        captions = self.captioner.captions(encoded, details=self.details, **self.options)
        records = []
        for opened, picture, best in zip(pictures, encoded, captions, strict=True):
            record = Record(opened.item, opened.sha256, best, self.model)
            if self.avoid_unsupported:
                avoided, without = self.captioner.caption_without_unsupported(
                    picture, best[0], **self.options
                )
                record = replace(record, avoided=tuple(avoided), without=without)
            records.append(record)
        return records

    def _encode(self, pictures: Sequence[Opened]) -> list[EncodedPicture]:
        prepared = [opened.prepared for opened in pictures]
        known = [p for p in prepared if isinstance(p, EncodedPicture)]
        new = [p for p in prepared if not isinstance(p, EncodedPicture)]
        return known or self.captioner.encode_prepared(new)
