"""Encode every picture of a dataset once, into a region cache."""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch.utils.data import DataLoader, Dataset

from sightline.devices import check_bfloat16
from sightline.encoders.box_cache import BoxCache
from sightline.encoders.content_hashes import ContentHashes
from sightline.encoders.encoder import Encoder
from sightline.encoders.precomputed import PrecomputedRegions, collate
from sightline.encoders.precomputed_encoder import PrecomputedEncoder
from sightline.encoders.preprocessing import WHOLE, Preprocessing, Window, mirror
from sightline.encoders.region_cache import Mirrored, Precision, RegionCache, picture_key
from sightline.encoders.regions_on_demand import RegionsOnDemand
from sightline.encoders.workers import end_with_parent
from sightline.errors import DataError, PictureError
from sightline.progress import progress
from sightline.regions import Regions

_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A picture on its way to the encoder, or what was wrong with it."""

    key: bytes
    pixels: NDArray[np.uint8] | None = None  # None: known already, or unreadable
    window: Window = WHOLE
    error: str | None = None


class _Pictures(Dataset[Prepared]):
    """Reads, hashes and prepares pictures; runs in the worker processes."""

    def __init__(
        self,
        pictures: Sequence[Path | Image | Mirrored],
        preprocessing: Preprocessing,
        known: Set[bytes],
        hashes: ContentHashes,
    ) -> None:
        self.pictures, self.preprocessing, self.known = pictures, preprocessing, known
        self.hashes = hashes

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> Prepared:
        picture = self.pictures[index]
        try:
            key = picture_key(picture, self.hashes)
            if key in self.known:
                return Prepared(key)
            if isinstance(picture, Mirrored):
                return Prepared(key, *mirror(*self.preprocessing.load(picture.picture)))
            return Prepared(key, *self.preprocessing.load(picture))
        except PictureError as error:
            return Prepared(b"", error=str(error))


def encode_pictures(
    pictures: Sequence[Path | Image | Mirrored],
    encoder: Encoder,
    cache: RegionCache,
    *,
    batch_size: int = 32,
    workers: int = 2,
    show_progress: bool = False,
) -> list[str]:
    """Add the pictures that a cache lacks; return a line for each that could not be read.

    The encoder computes in the precision of the cache.
    Worker processes read and decode ahead of the encoder. Pictures are encoded in the order given,
    in batches of exactly `batch_size` (but the last), and a killed run loses whole batches, so the
    one that goes on from there makes the same batches, and so the same bytes, as one never killed.
    """
    errors: list[str] = []
    bar = progress(None, "encoding", total=len(pictures), unit="picture", show=show_progress)
    if isinstance(encoder, PrecomputedEncoder):
        with bar:
            return _copy_features(pictures, encoder, cache, batch_size, bar)

    def unknown() -> Iterator[Prepared]:
        loader = DataLoader(
            _Pictures(pictures, encoder.preprocessing, cache.keys(), cache.hashes),
            batch_size=min(batch_size, 16),
            num_workers=workers,
            collate_fn=list,
            prefetch_factor=4 if workers else None,
            worker_init_fn=end_with_parent,
        )
        seen_keys: set[bytes] = set()
        for prepared in itertools.chain.from_iterable(loader):
            if prepared.error is not None:
                errors.append(prepared.error)
            if prepared.pixels is None or prepared.key in seen_keys:
                bar.update()
            else:
                seen_keys.add(prepared.key)
                yield prepared

    device = next(encoder.parameters()).device
    if cache.precision == "bf16" and device.type == "cpu":
        check_bfloat16("bf16")

    def encode(batch: list[Prepared]) -> tuple[list[bytes], Regions, NDArray[np.float32]]:
        pixels = torch.from_numpy(np.stack([p.pixels for p in batch if p.pixels is not None]))
        windows = np.array([prepared.window for prepared in batch], np.float32)
        with torch.inference_mode(), _precision(cache, device):
            regions = encoder(pixels.to(device), torch.from_numpy(windows).to(device))
        return [prepared.key for prepared in batch], regions, windows

    most = 1 if encoder.one_at_a_time else None
    # The generator looks at the cache when it is first asked, that is, once nobody else may write.
    with bar, cache.appending() as append:
        for keys, regions, windows in in_parallel(encode, _batched(unknown(), batch_size), most):
            append(keys, regions, windows)
            bar.update(len(keys))
    return errors


def _copy_features(
    pictures: Sequence[Path | Image | Mirrored],
    encoder: PrecomputedEncoder,
    cache: RegionCache,
    batch_size: int,
    bar: Any,
) -> list[str]:
    """Add the features of pictures that a cache lacks: in it they are read much faster."""
    errors: list[str] = []

    def unknown() -> Iterator[tuple[bytes, PrecomputedRegions]]:
        known = set(cache.keys())
        for picture in pictures:
            bar.update()
            try:
                key = cache.key(picture)
                if key not in known:
                    known.add(key)
                    yield key, encoder.look_up(picture)
            except (PictureError, DataError) as error:
                errors.append(str(error))

    with cache.appending() as append:
        for batch in _batched(unknown(), batch_size):
            nowhere = np.zeros((len(batch), 4), np.float32)
            append([key for key, _ in batch], collate([regions for _, regions in batch]), nowhere)
    return errors


def cache_for(encoder: Encoder, root: Path | None = None, precision: Precision = 32) -> RegionCache:
    """The cache of any encoder under `root`, made where absent."""
    if isinstance(encoder, PrecomputedEncoder):
        return BoxCache.for_features(encoder, root)
    return RegionCache.for_encoder(encoder, root, precision)


def encode_all(
    pictures: Sequence[Path | Image | Mirrored],
    encoder: Encoder,
    root: Path | None = None,
    *,
    precision: Precision = 32,
    show_progress: bool = False,
) -> RegionCache:
    """The cache of an encoder under `root`, with every one of the pictures in it.

    Of an encoder whose regions are not cached, they are made when they are read.
    """
    if not encoder.cached:
        return RegionsOnDemand(pictures, encoder)
    cache = cache_for(encoder, root, precision)
    errors = encode_pictures(pictures, encoder, cache, show_progress=show_progress)
    if errors:
        what, remedy = "pictures", "run sightline data check --fix"
        if not encoder.sees_pixels:
            what, remedy = "pictures' features", "make them, or leave these pictures out"
        raise DataError(f"{len(errors)} {what} cannot be read, the first: {errors[0]}; {remedy}")
    return cache


def _precision(cache: RegionCache, device: torch.device) -> AbstractContextManager[Any]:
    """The number format that a cache is filled in."""
    if cache.precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def in_parallel(
    encode: Callable[[_In], _Out], batches: Iterable[_In], most: int | None = None
) -> Iterator[_Out]:
    """`map`, several batches at once (at most `most`), each on one thread; results in order.

    Two threads that work on a batch each get more done than two that share one, and a batch's
    numbers do not depend on how many threads the machine has. A single batch at once has them all.
    """
    if most == 1:
        yield from map(encode, batches)
        return
    all_threads = torch.get_num_threads()
    threads = min(all_threads, most or all_threads)
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            waiting: deque[Future[_Out]] = deque()
            for batch in batches:
                waiting.append(pool.submit(encode, batch))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        torch.set_num_threads(all_threads)


def _batched(items: Iterable[_In], size: int) -> Iterator[list[_In]]:
    items = iter(items)
    while batch := list(itertools.islice(items, size)):
        yield batch
