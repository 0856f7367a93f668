"""What the server did, in numbers that Prometheus reads at `/metrics`."""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Monitor:
    """The counters of one server.

    >>> b"sightline_requests_total" in Monitor().text()
    True
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "sightline_requests", "Answered requests.", ("route", "status"), registry=registry
        )
        self.seconds = Histogram(
            *("sightline_request_seconds", "Time until an answer began.", ("route",)),
            registry=registry,
            buckets=_SECONDS,
        )
        self.batches = Histogram(
            *("sightline_batch_pictures", "Pictures that were computed together."),
            registry=registry,
            buckets=(1, 2, 4, 8, 16, 32, 64),
        )
        self.waiting = Gauge(
            "sightline_waiting", "Pieces of work that wait to be computed.", registry=registry
        )
        self.cancelled = Counter(
            "sightline_cancelled",
            "Pieces of work that were dropped because the client had gone.",
            registry=registry,
        )

    def text(self) -> bytes:
        """The numbers, as Prometheus reads them."""
        return generate_latest(self._registry)


class Watched:
    """Counts every request that passes, by its route: no address of a client becomes a label."""

    def __init__(self, app: ASGIApp, monitor: Monitor) -> None:
        self.app, self.monitor = app, monitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "other")
                self.monitor.requests.labels(route, str(message["status"])).inc()
                self.monitor.seconds.labels(route).observe(time.perf_counter() - began)
            await send(message)

        await self.app(scope, receive, watched)
