"""One thread that computes, and the queue before it.

Pictures that ask for the same thing within a few milliseconds are computed together. While a batch
is computed others gather, so that the busier the server is the larger its batches are. Whatever
takes long is split into pieces that queue one by one: a caption never waits for a whole report.
What nobody waits for any more is not begun, and what was begun ends at its next `advance`.
"""

import asyncio
import contextlib
import functools
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from sightline.captioner import Captioner, Prepared
from sightline.captions import Caption
from sightline.encoders.precomputed_encoder import PrecomputedEncoder
from sightline.errors import ConfigError
from sightline.pictures import open_picture
from sightline.progress import watched
from sightline.server.monitor import Monitor
from sightline.server.settings import Settings
from sightline.server.shelf import Shelf

T = TypeVar("T")
_DECODERS = 2  # threads that open pictures, while another computes


@dataclass(frozen=True)
class Wish:
    """How to caption a picture. Pictures with the same wish are captioned together."""

    captioner: str
    n_best: int = 1
    check: bool = False
    avoid: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    max_length: int | None = None

    def captions(self, captioner: Captioner, pictures: Sequence[Prepared]) -> list[list[Caption]]:
        limits: dict[str, Any] = {}
        if self.max_length is not None:
            limits["max_length"] = self.max_length
        return captioner.captions(
            captioner.encode_prepared(pictures),
            n_best=self.n_best,
            check=self.check,
            avoid=self.avoid,
            require=self.require,
            **limits,
        )


@dataclass(eq=False)
class _Piece:
    """Something to compute: of one item, or together with others of the same kind."""

    kind: Hashable  # None: not together with others
    item: Any
    compute: Callable[[list[Any]], list[Any]]
    result: "asyncio.Future[Any]"
    advance: Callable[[int, int], None] = lambda done, total: None  # for the thread that computes
    background: bool = False  # it comes after what somebody waits for


class _AbandonedError(Exception):
    """Nobody waits for what is being computed."""


class Engine:
    """Computes for all clients, a batch at a time.

    It works inside `running`; outside of it, what is asked waits.
    """

    def __init__(self, shelf: Shelf, settings: Settings, monitor: Monitor) -> None:
        self.shelf, self.settings, self.monitor = shelf, settings, monitor
        self._waiting: deque[_Piece] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "sightline-compute")
        self._decoders = ThreadPoolExecutor(_DECODERS, "sightline-decode")

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        work = asyncio.create_task(self._work())
        try:
            yield
        finally:
            work.cancel()
            for piece in self._waiting:
                piece.result.cancel()
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._decoders.shutdown(wait=False, cancel_futures=True)

    # --- what can be asked ----------------------------------------------------------------------

    async def captions(self, picture: bytes, wish: Wish) -> list[Caption]:
        """The captions of a picture, computed together with others that have the same wish."""
        prepared = await self.decode(prepare, await self.captioner(wish.captioner), picture)

        def compute(pictures: list[Prepared]) -> list[list[Caption]]:
            return wish.captions(self.shelf.get(wish.captioner), pictures)

        return await self.together(wish, prepared, compute, background=False)

    async def captioner(self, name: str) -> Captioner:
        """A captioner, loaded in its turn."""
        if (loaded := self.shelf.loaded(name)) is not None:
            return loaded
        return await self.alone(lambda: self.shelf.get(name))

    async def alone(
        self, compute: Callable[[], T], advance: Callable[[int, int], None] | None = None
    ) -> T:
        """Compute something by itself, in its turn; `advance` hears how far it is."""
        loop = asyncio.get_running_loop()

        def hand_on(done: int, total: int) -> None:
            if advance is not None:
                loop.call_soon_threadsafe(advance, done, total)

        result: T = await self._ask(None, None, lambda items: [compute()], advance=hand_on)
        return result

    async def together(
        self, kind: Hashable, item: Any, compute: Callable[[list[Any]], list[T]], background: bool
    ) -> T:
        """Compute something together with others of its kind: `compute` gets their items.

        What is in the `background` comes after what is not.
        """
        result: T = await self._ask(kind, item, compute, background=background)
        return result

    async def decode(self, work: Callable[..., T], *arguments: Any) -> T:
        """Open a picture or draw one, beside what is computed."""
        call = functools.partial(work, *arguments)
        return await asyncio.get_running_loop().run_in_executor(self._decoders, call)

    # --- the queue ------------------------------------------------------------------------------

    async def _ask(
        self, kind: Hashable, item: Any, compute: Callable[..., Any], **more: Any
    ) -> Any:
        piece = _Piece(kind, item, compute, asyncio.get_running_loop().create_future(), **more)
        self._waiting.append(piece)
        self.monitor.waiting.set(len(self._waiting))
        self._arrived.set()
        return await piece.result  # if the client goes away it is cancelled, and never computed

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            if len(self._waiting) < self.settings.batch and self._waiting[0].kind is not None:
                await asyncio.sleep(self.settings.window)
            batch = self._take()
            if not self._waiting:
                self._arrived.clear()
            if not batch:
                continue
            outcomes = await loop.run_in_executor(self._thread, _compute, batch)
            for piece, outcome in zip(batch, outcomes, strict=True):
                if piece.result.done():
                    self.monitor.cancelled.inc()
                elif isinstance(outcome, Exception):
                    piece.result.set_exception(outcome)
                else:
                    piece.result.set_result(outcome)

    def _take(self) -> list[_Piece]:
        """The first piece, and those of its kind behind it; others keep their order."""
        # Sorting keeps the order of those that are equal.
        self._waiting = deque(sorted(self._waiting, key=lambda piece: piece.background))
        batch: list[_Piece] = []
        others: deque[_Piece] = deque()
        for piece in self._waiting:
            if piece.result.done():
                self.monitor.cancelled.inc()
            elif not batch or (
                piece.kind is not None
                and piece.kind == batch[0].kind
                and len(batch) < self.settings.batch
            ):
                batch.append(piece)
            else:
                others.append(piece)
        self._waiting = others
        self.monitor.waiting.set(len(others))
        if batch and batch[0].kind is not None:
            self.monitor.batches.observe(len(batch))
        return batch


def _compute(batch: list[_Piece]) -> list[Any]:
    """The result of each piece, or its error. One that fails does not take others with it."""

    def watch(done: int, total: int) -> None:
        if all(piece.result.done() for piece in batch):
            raise _AbandonedError
        for piece in batch:
            piece.advance(done, total)

    try:
        with watched(watch):
            return batch[0].compute([piece.item for piece in batch])
    except _AbandonedError as error:
        return [error] * len(batch)
    except Exception as error:
        if len(batch) == 1:
            return [error]
        return [outcome for piece in batch for outcome in _compute([piece])]


def prepare(captioner: Captioner, picture: bytes) -> Prepared:
    """What the encoder is given of a picture; not the picture, of which many may wait."""
    if isinstance(captioner.encoder, PrecomputedEncoder):
        raise ConfigError("this captioner knows pictures by their features alone: choose another")
    preprocessing = captioner.encoder.preprocessing
    return preprocessing.prepare(open_picture(picture, reduced_to=2 * preprocessing.size))
