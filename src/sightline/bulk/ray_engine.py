"""Bulk captioning on a Ray cluster: pictures are decoded and captioned wherever there is room.

The driver lists the source, Ray Data carries batches through two pools of actors (one decodes, in
the other each has a captioner), and the driver writes every batch that comes back as a part of a
Parquet table, complete when it has its name. A lost node costs its batches, which others take over.
A killed driver is started again and captions what no part has. Pictures and checkpoints must have
the same paths on every machine.
"""

import json
import os
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from sightline.bulk.items import Item
from sightline.bulk.job import Job, Summary
from sightline.bulk.output import Output
from sightline.bulk.parquet import ParquetParts
from sightline.bulk.reading import Opened, open_item
from sightline.bulk.records import Failure, Row, content_size
from sightline.bulk.sink import Sink, pending
from sightline.bulk.sources import Source
from sightline.captioner import Captioner
from sightline.encoders.preprocessing import Preprocessing
from sightline.errors import ConfigError
from sightline.extras import require
from sightline.memory import keep_freed_memory
from sightline.pictures import FILE_BYTES
from sightline.progress import progress

# A part is written when it has so many rows, or after so many seconds: a commit takes the driver
# some twenty milliseconds, and readers do not like millions of small files.
_PART_ROWS, _PART_SECONDS = 1024, 10.0
# Batches that are handed to Ray at once: what the driver holds of a list of millions. A batch, and
# a wave of them, are complete sooner where so many bytes of pictures came with the list.
_WAVE, _BATCH_BYTES, _WAVE_BYTES = 256, FILE_BYTES // 8, FILE_BYTES

# What an actor reserves of a core. It is less than it uses, so that all of them find room again if
# half of the machines are lost: Ray would wait forever for the others.
_RESERVED_BY_CAPTIONER, _RESERVED_BY_DECODER = 0.45, 0.1
_CAPTIONERS_PER_DECODER = 8  # on cores; a picture is captioned for 15 times as long as decoded

_Thing = TypeVar("_Thing")
_Pending = list[Item | Failure]


@dataclass(frozen=True)
class Cluster:
    """How to use a cluster. Without an address, this machine is one."""

    address: str | None = None
    captioners: int | None = None  # None: one for each GPU, or for each core if there is none
    decoders: int | None = None


class Decoder:
    """Reads the pictures of a batch; an actor."""

    def __init__(self, preprocessing: dict[str, Any]) -> None:
        keep_freed_memory()
        self.preprocessing = Preprocessing.from_json(preprocessing)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        items: _Pending = pickle.loads(row["items"])
        opened = [
            item if isinstance(item, Failure) else open_item(item, self.preprocessing)
            for item in items
        ]
        good = [picture for picture in opened if isinstance(picture, Opened)]
        bad = [picture.row() for picture in opened if isinstance(picture, Failure)]
        return {
            "pictures": pickle.dumps(good),
            "failures": json.dumps(bad),
        }


class Captions:
    """Captions a batch; an actor with a captioner of its own."""

    def __init__(
        self, checkpoint: str, avoid_unsupported: bool, attention: bool, options: dict[str, Any]
    ) -> None:
        keep_freed_memory()  # the process is ours, as that of `sightline caption` is
        captioner = Captioner.load(checkpoint)
        self.job = Job(
            captioner, avoid_unsupported=avoid_unsupported, options=options, details=attention
        )
        self.attention = attention

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        records = self.job.caption(pickle.loads(row["pictures"]))
        marked = sum(record.is_marked for record in records)
        rows = [record.row(self.attention) for record in records]
        done = {"rows": json.dumps(rows), "failures": row["failures"], "marked": marked}
        return {**done, "worker": os.getpid()}


def caption_on_ray(
    job: Job, source: Source, sink: Sink, cluster: Cluster, show_progress: bool = False
) -> Summary:
    """Run a job on a cluster. The sink is a folder of parts."""
    require("ray", "--engine ray")
    if not isinstance(sink, Output) or not isinstance(sink.form, ParquetParts):
        raise ConfigError("--engine ray writes a folder of Parquet parts; leave out --format")
    if job.captioner.checkpoint is None or not job.captioner.encoder.sees_pixels:
        raise ConfigError("--engine ray needs one captioner from a checkpoint that sees pixels")
    summary, began = Summary(), time.monotonic()
    sink.begin(job.settings())
    pool = _Pool(cluster, job, sink.form.attention)
    total = source.count() if show_progress else None
    bar = progress(None, "captioning", total=total, unit="picture", show=show_progress)
    with bar:

        def skip() -> None:
            summary.skipped += 1
            bar.update()

        part = _Part(sink)
        for wave in _waves(pending(source, sink, skip), job.batch_size):
            for rows, failures, marked, _ in pool.run(wave):
                part.add(rows, failures)
                summary.captioned += len(rows)
                summary.failed += len(failures)
                summary.marked += marked
                for failure in failures:
                    summary.count_format(failure)
                bar.update(len(rows) + len(failures))
                bar.set_postfix(summary.counts(bool(job.options.get("check"))), refresh=False)
        part.write()
        sink.finish()
    summary.seconds = time.monotonic() - began
    return summary


class _Part:
    """Batches that are waiting to be written as one part."""

    def __init__(self, output: Output) -> None:
        self.output, self.written = output, time.monotonic()
        self.rows: list[Row] = []
        self.failures: list[Failure] = []

    def add(self, rows: list[Row], failures: list[Failure]) -> None:
        self.rows += rows
        self.failures += failures
        late = time.monotonic() - self.written > _PART_SECONDS
        if late or len(self.rows) >= _PART_ROWS:
            self.write()

    def write(self) -> None:
        if self.rows or self.failures:
            self.output.write_rows(self.rows, self.failures)
        self.rows, self.failures, self.written = [], [], time.monotonic()


def _waves(items: Iterator[Item | Failure], batch_size: int) -> Iterator[list[_Pending]]:
    """Batches, so many of them at once as the driver may hold."""
    batches = _groups(items, batch_size, _BATCH_BYTES, content_size)
    return _groups(batches, _WAVE, _WAVE_BYTES, lambda batch: sum(map(content_size, batch)))


def _groups(
    things: Iterator[_Thing], most: int, most_bytes: int, size: Callable[[_Thing], int]
) -> Iterator[list[_Thing]]:
    """Things in groups: of `most`, or fewer where so many bytes are reached."""
    group: list[_Thing] = []
    held = 0
    for thing in things:
        group.append(thing)
        held += size(thing)
        if len(group) == most or held >= most_bytes:
            yield group
            group, held = [], 0
    if group:
        yield group


class _Pool:
    """The two pools of actors, of which each wave of batches makes a pipeline."""

    def __init__(self, cluster: Cluster, job: Job, attention: bool) -> None:
        import ray

        if not ray.is_initialized():
            try:
                ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, ValueError, TimeoutError) as error:
                reason = " ".join(str(error).split())[:120]
                raise ConfigError(f"--address {cluster.address}: no Ray there ({reason})") from None
        there = ray.cluster_resources()
        cores, gpus = int(there.get("CPU", 1)), int(there.get("GPU", 0))
        self.captioners = cluster.captioners or gpus or cores
        few = cores - gpus if gpus else cores // _CAPTIONERS_PER_DECODER
        self.decoders = cluster.decoders or max(1, few)
        self.gpus = 1.0 if gpus else 0.0
        self.preprocessing = job.captioner.encoder.preprocessing.to_json()
        assert job.captioner.checkpoint is not None
        checkpoint = str(job.captioner.checkpoint.resolve())
        self.given = (checkpoint, job.avoid_unsupported, attention, job.options)

    def run(self, wave: list[_Pending]) -> Iterator[tuple[list[Row], list[Failure], int, int]]:
        """Of each batch, as they are done: rows, failures, how many are marked, and whose it is."""
        from ray import data

        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.max_errored_blocks = 0
        items = [{"items": pickle.dumps(batch)} for batch in wave]
        decoded = data.from_items(items, override_num_blocks=len(items)).map(
            Decoder,
            fn_constructor_args=(self.preprocessing,),
            compute=data.ActorPoolStrategy(size=self.decoders),
            num_cpus=_RESERVED_BY_DECODER,
        )
        captioned = decoded.map(
            Captions,
            fn_constructor_args=self.given,
            compute=data.ActorPoolStrategy(size=self.captioners),
            num_cpus=_RESERVED_BY_CAPTIONER,
            num_gpus=self.gpus,
        )
        for row in captioned.iter_rows():
            failures = [
                Failure(f["path"], f["kind"], f["error"]) for f in json.loads(row["failures"])
            ]
            yield json.loads(row["rows"]), failures, int(row["marked"]), int(row["worker"])
