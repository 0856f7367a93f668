"""A report that grows while a page shows it: the caption, its verdicts, one method after another.

It is sent as lines of JSON. Each says what is done next and how far it is.
"""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from PIL.Image import Image

from sightline.captions import Caption
from sightline.explain.methods import find_method, list_methods
from sightline.pictures import open_picture
from sightline.report.page_data import grown_data, method_data, page_data, verdict_data
from sightline.report.report import REPORT_SIDE, Report
from sightline.server.engine import Engine
from sightline.server.presence import ClientGoneError, unless_gone
from sightline.server.problems import sentence_of
from sightline.server.tray import Kept

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Asked:
    """What a page asks about a picture."""

    key: str
    picture: Kept
    model: str
    caption: str | None
    why_not: tuple[str, ...]
    methods: tuple[str, ...]

    async def answer(self, engine: Engine, tell: Tell) -> None:
        """Tell the report, part by part."""
        stages = _Stages(engine, tell, 2 + len(self.methods))
        tell({"kept": self.key, **stages.next("Looking at the picture")})
        captioner = await engine.captioner(self.model)
        image, look = await asyncio.gather(
            engine.decode(_open, self.picture.content), self.picture.look(engine, self.model)
        )
        texts = [one.text for one in look.beam]
        said: Caption | str = self.caption or look.beam[0]
        # A caption of the beam is the captioner's own, whoever chose it.
        place = texts.index(str(said)) if str(said) in texts else None
        steps = captioner.report_steps(
            dataclasses.replace(look.encoded, image=image),
            name=self.picture.name,
            caption=said if place is None else look.beam[place],
            methods=self.methods,
            why_not=[(word, None) for word in self.why_not],
        )
        report = await stages.compute(steps)
        data = await engine.decode(page_data, report)
        shown = {method["name"] for method in data["methods"]}
        data["methods"] += [method_data(name) for name in list_methods() if name not in shown]
        data["growing"] = True
        if captioner.can_check and not report.caption.is_checked:
            data["caption"]["verdict"] = "Its words are being checked against the picture."
        tell({"report": data, "beam": texts, **stages.next("Checking the words")})
        report = await stages.compute(steps)
        if place is not None:
            look.beam[place] = report.caption
        verdicts = await engine.decode(verdict_data, report)
        tell({"checked": verdicts, **stages.next(_explaining(report))})
        while report.pending:
            method = report.pending[0]
            report = await stages.compute(steps)
            grown = await engine.decode(grown_data, report, method)
            tell({"grown": grown, **stages.next(_explaining(report))})


class _Stages:
    """How far a report is: stages one after the other, and how far within each."""

    def __init__(self, engine: Engine, tell: Tell, count: int) -> None:
        self.engine, self.tell, self.count = engine, tell, count
        self.stage, self.part, self.doing = -1, 0.0, ""

    def next(self, doing: str | None) -> dict[str, Any]:
        self.stage, self.part, self.doing = self.stage + 1, 0.0, doing or ""
        return self._state()

    async def compute(self, steps: Iterator[Report]) -> Report:
        return await self.engine.alone(lambda: next(steps), self._advance)

    def _advance(self, done: int, total: int) -> None:
        if done / total > self.part:  # what is done in several rounds does not go back
            self.part = done / total
            self.tell(self._state())

    def _state(self) -> dict[str, Any]:
        return {"done": round(self.stage + self.part, 3), "of": self.count, "doing": self.doing}


async def lines(request: Request, engine: Engine, asked: Asked) -> AsyncIterator[str]:
    """The answer as lines; an error is the last. When the client goes away, so does the work."""
    told: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    async def work() -> None:
        try:
            await asked.answer(engine, told.put_nowait)
        except Exception as error:
            told.put_nowait({"problem": sentence_of(error)[1]})
        told.put_nowait(None)

    working = asyncio.create_task(work())
    try:
        while (line := await unless_gone(request, told.get())) is not None:
            yield json.dumps(line, separators=(",", ":")) + "\n"
    except ClientGoneError:
        return
    finally:
        working.cancel()


def _open(content: bytes) -> Image:
    return open_picture(content, reduced_to=REPORT_SIDE)


def _explaining(report: Report) -> str | None:
    return f"Explaining by {find_method(report.pending[0]).label}" if report.pending else None
