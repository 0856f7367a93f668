"""The application: routes, their errors, and the layers that every request passes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import PlainTextResponse

from sightline.server import api, ollama_shape, openai_shape
from sightline.server.engine import Engine
from sightline.server.examples import add_examples
from sightline.server.limits import Limits
from sightline.server.monitor import Monitor, Watched
from sightline.server.problems import Problem, add_handlers
from sightline.server.safety import Guard
from sightline.server.sections import Section, add_sections
from sightline.server.settings import Settings
from sightline.server.shelf import Shelf
from sightline.version import __version__


def create_app(
    settings: Settings, sections: Sequence[Section] = (), shelf: Shelf | None = None
) -> FastAPI:
    """The server as an ASGI application, which any ASGI server runs.

    >>> create_app(Settings()).title
    'Sightline'
    """
    monitor = Monitor()
    engine = Engine(shelf or Shelf(in_memory=settings.loaded), settings, monitor)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(engine.running())
            for section in sections:
                if section.lifespan is not None:
                    await stack.enter_async_context(section.lifespan(app))
            yield

    app = FastAPI(
        title="Sightline",
        summary="Image captions you can check",
        version=__version__,
        docs_url=None,  # its scripts would come from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.settings, app.state.engine, app.state.monitor = settings, engine, monitor
    add_handlers(app)
    for part in (api, openai_shape, ollama_shape):
        app.include_router(part.router)

    @app.get("/healthz", summary="Whether the server answers", tags=["Server"])
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get(
        "/metrics",
        summary="Numbers for Prometheus",
        tags=["Server"],
        response_class=PlainTextResponse,
    )
    async def metrics() -> Response:
        return Response(monitor.text(), media_type=monitor.content_type)

    add_sections(app, sections)
    public = [path for section in sections for path in section.public]
    app.add_middleware(Limits, settings=settings)
    app.add_middleware(Guard, settings=settings, public=public)
    app.add_middleware(Watched, monitor=monitor)  # the outermost
    app.openapi = _described(app)  # type: ignore[method-assign]
    return app


def _described(app: FastAPI) -> Any:
    """The OpenAPI document with examples; errors in it are problem objects and nothing else."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generate()
            schemas = document["components"]["schemas"]
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            schemas["Problem"] = Problem.model_json_schema()
            add_examples(document)
        return app.openapi_schema or {}

    return openapi
