"""The captioners that a server knows by name. Only those used last are in memory."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from sightline.adapters.source import find_source
from sightline.captioner import Captioner
from sightline.checkpoint import find_checkpoint
from sightline.config import nearest
from sightline.errors import ConfigError


class Shelf:
    """Captioners by name, loaded when they are asked for. The first is the default.

    Whoever computes asks for a captioner each time; it is not kept between requests.

    >>> Shelf().names
    ('bundled',)
    """

    def __init__(
        self, paths: Sequence[Path] = (), device: str = "auto", in_memory: int = 1
    ) -> None:
        self._device, self._in_memory = device, in_memory
        self._loaded: OrderedDict[str, Captioner] = OrderedDict()
        self._paths: dict[str, Path] = {}
        for path in paths or [find_checkpoint()]:
            find_checkpoint(path)  # a wrong name is said now, and not to the first client
            source = find_source(path)
            name = path.resolve().name if source is None else source.label
            self._paths[_new_name(name, self._paths)] = path

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._paths)

    def find(self, name: str | None) -> str:
        """The name of a captioner, or of the default for none; an error hints at what is known."""
        if not name:
            return self.names[0]
        if name not in self._paths:
            near = nearest(name, list(self.names))
            raise UnknownCaptionerError(f"no captioner is called '{name}'; {near}")
        return name

    def loaded(self, name: str) -> Captioner | None:
        """A captioner that is in memory, or None. For any thread."""
        return self._loaded.get(name)

    def get(self, name: str) -> Captioner:
        """A captioner, loaded if it is not in memory. For the thread that computes."""
        if name not in self._loaded:
            while len(self._loaded) >= self._in_memory:
                self._loaded.popitem(last=False)
            self._loaded[name] = Captioner.load(self._paths[name], device=self._device)
        self._loaded.move_to_end(name)
        return self._loaded[name]


class UnknownCaptionerError(ConfigError):
    """A captioner that the server was not started with."""


def _new_name(name: str, taken: dict[str, Path]) -> str:
    """A name that no other captioner has.

    >>> _new_name("run", {"run": Path("a/run")})
    'run-2'
    """
    number, new = 1, name
    while new in taken:
        number += 1
        new = f"{name}-{number}"
    return new
