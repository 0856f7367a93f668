"""`/v1/caption`, `/v1/check`, `/v1/explain` and `/v1/models`."""

import base64
import io
from typing import Annotated, Any, Literal

from fastapi import APIRouter, File, Form, Request, UploadFile

from sightline.explain.methods import find_method, list_methods
from sightline.explanation import Explanation
from sightline.report.heatmaps import heatmap
from sightline.report.report import DEFAULT_METHODS, Report, parse_why_not
from sightline.server.engine import Engine, Wish
from sightline.server.presence import unless_gone
from sightline.server.problems import describe
from sightline.server.schemas import (
    CaptionAnswer,
    Captions,
    Check,
    Explanations,
    Model,
    Models,
    unsaid_answer,
)

router = APIRouter(prefix="/v1", tags=["Sightline"])
_ERRORS = describe(400, 403, 404, 408, 413, 421, 422, 503)

Image = Annotated[UploadFile, File(description="JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF or HEIC.")]
ModelName = Annotated[
    str | None, Form(description="A name of /v1/models. Default: the first.", max_length=200)
]
Words = Annotated[list[Annotated[str, Form(max_length=60)]], Form(max_length=20)]
Text = Annotated[str, Form(min_length=1, max_length=600)]
Maps = Annotated[Literal["png", "numbers", "none"], Form(description="How maps are given.")]


@router.get("/models", summary="The captioners and the explanation methods")
async def models(request: Request) -> Models:
    data = [Model(id=name) for name in engine_of(request).shelf.names]
    return Models(data=data, methods=list_methods())


@router.post("/caption", summary="Caption a picture", responses=_ERRORS)
async def caption(
    request: Request,
    image: Image,
    model: ModelName = None,
    n_best: Annotated[int, Form(ge=1, le=20, description="Captions, best first.")] = 1,
    check: Annotated[bool, Form(description="Say which words the picture supports.")] = False,
    avoid: Words = [],  # noqa: B006 - copied by FastAPI
    require: Words = [],  # noqa: B006
    max_length: Annotated[int | None, Form(ge=1, le=50, description="Words.")] = None,
    attention: Annotated[bool, Form(description="Also where each word looked.")] = False,
) -> Captions:
    """The best captions of a picture. Requests that come together are computed together.

    `curl -F image=@photo.jpg -F check=true http://127.0.0.1:8765/v1/caption`
    """
    engine = engine_of(request)
    wish = Wish(
        engine.shelf.find(model),
        n_best,
        check,
        tuple(_lower(avoid)),
        tuple(_lower(require)),
        max_length,
    )
    captions = await unless_gone(request, engine.captions(await image.read(), wish))
    return Captions(
        model=wish.captioner, captions=[CaptionAnswer.of(each, attention) for each in captions]
    )


@router.post("/check", summary="Check a caption of your own", responses=_ERRORS)
async def check(
    request: Request,
    image: Image,
    caption: Text,
    model: ModelName = None,
    attention: Annotated[bool, Form()] = False,
) -> Check:
    """Which words of a caption the picture supports, whoever wrote it.

    `curl -F image=@photo.jpg -F 'caption=a dog on a sofa' http://127.0.0.1:8765/v1/check`
    """
    engine = engine_of(request)
    name, picture = engine.shelf.find(model), await image.read()

    def work() -> Check:
        captioner = engine.shelf.get(name)
        encoded = captioner.encode(picture)
        read = captioner.check(encoded, captioner.read(encoded, caption))
        strange = dict.fromkeys(
            word.text for word in read.words if word.text not in captioner.vocabulary
        )
        return Check(
            model=name,
            caption=CaptionAnswer.of(read, attention),
            unknown=[captioner.nearest(word).to_json() for word in strange],  # type: ignore[misc]
        )

    return await unless_gone(request, engine.alone(work))


@router.post("/explain", summary="Explain the words of a caption", responses=_ERRORS)
async def explain(
    request: Request,
    image: Image,
    model: ModelName = None,
    caption: Annotated[str | None, Form(min_length=1, max_length=600)] = None,
    method: Annotated[
        list[Annotated[str, Form(max_length=60)]],
        Form(max_length=20, description="Names of /v1/models."),
    ] = [DEFAULT_METHODS[0]],  # noqa: B006
    words: Words = ["all"],  # noqa: B006
    why_not: Words = [],  # noqa: B006
    maps: Maps = "png",
    map_side: Annotated[int, Form(ge=1, le=512, description="Pixels of the longer side.")] = 96,
) -> Explanations:
    """What each word is based on, and why other words were not said.

    `why_not` is a word, or a word and its position as in `dog@3`. Work is cancelled between two
    methods when the client goes away.

    `curl -F image=@photo.jpg -F why_not=cat http://127.0.0.1:8765/v1/explain`
    """
    engine = engine_of(request)
    name, picture = engine.shelf.find(model), await image.read()
    for one in method:
        find_method(one)
    asked = [parse_why_not(text) for text in why_not]

    async def work() -> Explanations:
        captioner = await engine.captioner(name)
        steps = captioner.report_steps(
            picture,
            name="picture",
            caption=caption,
            words=_lower(words),
            methods=tuple(dict.fromkeys(method)),
            why_not=asked,
        )
        report = await engine.alone(lambda: next(steps))
        while report.pending:
            report = await engine.alone(lambda: next(steps))
        return await engine.decode(_explanations, name, report, maps, map_side)

    return await unless_gone(request, work())


def engine_of(request: Request) -> Engine:
    engine: Engine = request.app.state.engine
    return engine


def _explanations(name: str, report: Report, maps: str, side: int) -> Explanations:
    content = report.to_json()
    for explanation, why in zip(content["explanations"], report.explanations, strict=True):
        explanation["map"] = _map(why, maps, side)
    return Explanations.model_validate(
        {
            "model": name,
            "caption": CaptionAnswer.of(report.caption),
            "explanations": content["explanations"],
            "unsaid": [
                unsaid_answer(each.word, each.place, each.everywhere)
                for each in report.counterfactuals
            ],
            "unknown": content["unknown"],
            "skipped": report.skipped,
        }
    )


def _map(why: Explanation, maps: str, side: int) -> dict[str, Any] | None:
    if maps == "none":
        return None
    relevance = heatmap(why, side)
    if maps == "numbers":
        values = [[round(value, 4) for value in row] for row in relevance.values.tolist()]
        return {"scale": relevance.scale, "values": values}
    buffer = io.BytesIO()
    relevance.levels().save(buffer, "png")
    return {"scale": relevance.scale, "png": base64.b64encode(buffer.getvalue()).decode()}


def _lower(words: list[str]) -> list[str]:
    return [word.strip().lower() for word in words if word.strip()]
