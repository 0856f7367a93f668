"""`caption_all`: any number of pictures in, a table or sidecars out."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sightline.bulk.formats import open_format
from sightline.bulk.items import Item
from sightline.bulk.job import BATCH, WORKERS, Job, Summary
from sightline.bulk.output import Output
from sightline.bulk.sink import Sink
from sightline.bulk.sources import Source, open_source
from sightline.captioner import Captioner
from sightline.config import nearest
from sightline.errors import ConfigError


def caption_all(
    source: Source | str | Path | Item | Iterable[str | Path | Item],
    sink: Sink | str | Path,
    *,
    captioner: Captioner | None = None,
    format: str | None = None,
    failures: str | Path | None = None,
    skip_existing: bool = False,
    overwrite: bool = False,
    retry: bool = False,
    attention: bool = False,
    column: str | None = None,
    allow_urls: bool = False,
    batch_size: int = BATCH,
    workers: int = WORKERS,
    avoid_unsupported: bool = False,
    engine: str = "local",
    address: str | None = None,
    show_progress: bool = False,
    **options: Any,
) -> Summary:
    """Caption every picture of a source, and write the captions as they come.

    `source` is a file, folder, pattern, table, tar shard or web address, or a list of them. `sink`
    is a file (or a folder of sidecars), whose suffix or `format` says how; or a `Sink` of yours.
    With `engine="ray"` it is a folder of Parquet parts, and a Ray cluster (`address`) captions.
    `options` are those of `Captioner.captions`, such as `check=True`. A job that was interrupted
    goes on when it is called again. With `attention`, rows say what each word looked at; a `Sink`
    of yours is given that in any case.

    >>> sightline.caption_all("photos", "captions.jsonl", check=True)  # doctest: +SKIP
    Summary(captioned=1200, failed=1, …)
    """
    pictures = open_source(source, column, allow_urls)
    captioner = captioner or Captioner.load()
    options["check"] = options.get("check", False) or avoid_unsupported
    if engine not in ("local", "ray"):
        raise ConfigError(f"no engine is called '{engine}'; {nearest(engine, ['local', 'ray'])}")
    details = attention or not isinstance(sink, str | Path)
    with contextlib.ExitStack() as stack:
        if isinstance(sink, str | Path):
            extra = ["captions"] if options.get("n_best", 1) > 1 else []
            extra += ["avoided"] if avoid_unsupported else []
            form = open_format(
                Path(sink),
                format or ("parquet-parts" if engine == "ray" else None),
                attention=attention,
                optional=extra,
                overwrite=overwrite,
            )
            output = Output(
                form,
                None if failures is None else Path(failures),
                skip_existing=skip_existing and engine == "local",
                overwrite=overwrite,
                retry=retry,
            )
            sink = stack.enter_context(output)
        job = Job(captioner, batch_size, workers, avoid_unsupported, options, details)
        if engine == "local":
            return job.run(pictures, sink, show_progress)
        from sightline.bulk.ray_engine import Cluster, caption_on_ray

        return caption_on_ray(job, pictures, sink, Cluster(address), show_progress)
