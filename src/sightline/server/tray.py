"""The pictures that pages work on: those sent last, and those of the server's folder."""

import secrets
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from starlette.exceptions import HTTPException

from sightline.bulk.items import Item, readable
from sightline.bulk.sources import Source
from sightline.captioner import Prepared
from sightline.captions import Caption
from sightline.encoded_picture import EncodedPicture
from sightline.server.engine import Engine, prepare

BEAM = 5  # captions to choose from


@dataclass(frozen=True)
class Look:
    """What a captioner made of a picture at first sight."""

    encoded: EncodedPicture
    beam: list[Caption]  # best first; each is replaced by itself with its verdicts once it has them


@dataclass
class Kept:
    """A picture that the page may ask about again."""

    name: str
    content: bytes
    looks: dict[str, Look] = field(default_factory=dict)  # by the captioner's name

    async def look(self, engine: Engine, model: str, *, background: bool = False) -> Look:
        """The first look of a captioner, taken once; one in the background checks the caption."""
        if model not in self.looks:
            prepared = await engine.decode(prepare, await engine.captioner(model), self.content)

            def compute(pictures: list[Prepared]) -> list[Look]:
                return _look(engine, model, pictures, check=background)

            self.looks[model] = await engine.together(
                ("look", model, background), prepared, compute, background
            )
        return self.looks[model]


class Tray:
    """Keeps the pictures that were sent last, and lists those of a folder."""

    def __init__(self, folder: Path | None, most: int) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._most = most
        self.folder = list(_pictures_in(folder)) if folder is not None else []

    def keep(self, name: str, content: bytes) -> str:
        """Keep a picture; the key by which only its sender knows it."""
        key = secrets.token_urlsafe(12)
        self._kept[key] = Kept(name, content)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return key

    def find(self, key: str) -> Kept:
        """A picture by its key, if it is still kept."""
        if key not in self._kept:
            raise HTTPException(410, "the picture is no longer kept: send it again")
        self._kept.move_to_end(key)
        return self._kept[key]

    def in_folder(self, number: int) -> Item:
        """A picture of the folder, by its number: no path can be asked for."""
        if not 0 <= number < len(self.folder):
            raise HTTPException(404, "there is no such picture in the folder")
        return self.folder[number]


def _look(engine: Engine, model: str, pictures: list[Prepared], *, check: bool) -> list[Look]:
    captioner = engine.shelf.get(model)
    encoded = captioner.encode_prepared(pictures)
    beams = captioner.captions(encoded, n_best=BEAM)
    if check and captioner.can_check:
        checked = captioner.check(encoded, [beam[0] for beam in beams])
        beams = [[best, *beam[1:]] for best, beam in zip(checked, beams, strict=True)]
    return [Look(picture, beam) for picture, beam in zip(encoded, beams, strict=True)]


def _pictures_in(folder: Path) -> Iterator[Item]:
    root = folder.resolve()
    for item in Source([folder], follow_links=False):  # (a failure, if there are none)
        # A link may lead out of the folder; what it leads to was not offered.
        if isinstance(item, Item) and item.path and item.path.resolve().is_relative_to(root):
            yield replace(item, inside=readable(item.inside))
