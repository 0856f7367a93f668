"""Plug-ins: captioners, objectives, explanation methods and encoders from outside the package.

A plug-in has entries of the same types as our own tables: a `ModelEntry`, an `ObjectiveEntry`, a
`Method` or an `EncoderEntry`. It is found in either of two ways:

- an installed package names each entry, or a dictionary that has it, in its metadata, in the
  entry-point groups `sightline.models`, `.objectives`, `.methods` and `.encoders`;
- a plain module, which need not be installed, is named by the environment variable
  SIGHTLINE_PLUGINS (several by commas). Its entries are in its dictionaries MODELS, OBJECTIVES,
  METHODS and ENCODERS, by name. It is imported from where Python looks, then from the current
  folder.

Both are the user's choice. A checkpoint or a recipe names what it needs and imports nothing.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Literal, TypeVar

from sightline.config import nearest
from sightline.errors import ConfigError

Kind = Literal["models", "objectives", "methods", "encoders"]
Entry = TypeVar("Entry")

VARIABLE = "SIGHTLINE_PLUGINS"
_used: list[str] = []  # modules that were asked for in this process


@dataclass(frozen=True)
class Offer:
    """What a plug-in has under a name; an entry point's entry is imported when it is needed."""

    name: str
    module: str
    entry: Any = None
    point: Any = None  # importlib.metadata.EntryPoint

    def load(self) -> Any:
        if self.point is None:
            return self.entry
        try:
            entry = self.point.load()
        except (Exception, SystemExit) as error:
            raise ConfigError(f"plug-in {self.point.value}: {_reason(error)}") from None
        return entry.get(self.name) if isinstance(entry, dict) else entry


class Registry(Generic[Entry]):
    """Entries by name: ours, then those of plug-ins. An entry of ours cannot be replaced.

    >>> numbers = Registry("models", int, "number: none is called", {"one": 1})
    >>> numbers.find("one"), numbers.names()
    (1, ['one'])
    >>> numbers.find("on")
    Traceback (most recent call last):
    sightline.errors.ConfigError: number: none is called 'on'; did you mean 'one'?
    """

    def __init__(
        self, kind: Kind, entry: type[Entry], unknown: str, builtin: dict[str, Entry]
    ) -> None:
        self.kind, self.entry, self.builtin = kind, entry, builtin
        self._unknown = unknown

    def names(self) -> list[str]:
        """All names, ours first; no installed plug-in is imported for it."""
        return [*self.builtin, *self._offers()]

    def find(self, name: str) -> Entry:
        """An entry by its name; an error names the nearest one there is."""
        if name in self.builtin:
            self._offers(installed=False)  # a module that claims the name is refused
            return self.builtin[name]
        offers = self._offers()
        if name not in offers:
            hint = nearest(name, self.names())
            if not hint.startswith("did you mean"):
                hint += f"; a plug-in that is not installed is named by {VARIABLE}"
            raise ConfigError(f"{self._unknown} '{name}'; {hint}")
        entry = offers[name].load()
        if not isinstance(entry, self.entry):
            raise ConfigError(
                f"plug-in {offers[name].module}: '{name}' must be a {self.entry.__name__}, "
                f"not {type(entry).__name__}"
            )
        return entry

    def origin(self, name: str) -> str | None:
        """The module of the plug-in that has a name; None for ours and for the unknown."""
        if name in self.builtin:
            return None
        offer = self._offers().get(name)
        return None if offer is None else offer.module

    def _offers(self, installed: bool = True) -> dict[str, Offer]:
        offers: dict[str, Offer] = {}
        for offer in _offers(self.kind, installed):
            if offer.name in self.builtin:
                raise ConfigError(
                    f"plug-in {offer.module}: '{offer.name}' is the name of one of Sightline's own "
                    f"{self.kind}; give it another"
                )
            first = offers.setdefault(offer.name, offer)
            if first.module != offer.module:
                raise ConfigError(
                    f"plug-ins {first.module} and {offer.module}: both have a '{offer.name}' among "
                    f"their {self.kind}; use one of them"
                )
        return offers


def use_plugin(module: str) -> Any:
    """Import a plug-in's module and take its entries up, as SIGHTLINE_PLUGINS does.

    >>> use_plugin("no_such_module")
    Traceback (most recent call last):
    sightline.errors.ConfigError: plug-in no_such_module: there is no such module here
    """
    imported = _import(module)
    if module not in _used:
        _used.append(module)
    return imported


def entries_of(module: str, kind: Kind) -> list[str]:
    """The names of one kind that a plug-in's module, or a package with that name, has."""
    inside = f"{module}."
    offers = _offers(kind, installed=True)
    return list(
        dict.fromkeys(o.name for o in offers if o.module == module or o.module.startswith(inside))
    )


def _offers(kind: Kind, installed: bool) -> Iterator[Offer]:
    named = [name.strip() for name in os.environ.get(VARIABLE, "").split(",")]
    for module in dict.fromkeys(filter(None, (*named, *_used))):
        table = getattr(_import(module), kind.upper(), {})
        if not isinstance(table, dict):
            raise ConfigError(f"plug-in {module}: {kind.upper()} must be a dictionary of entries")
        for name, entry in table.items():
            yield Offer(str(name), module, entry)
    if installed:
        for point in _entry_points(kind):
            yield Offer(point.name, point.module, point=point)


@cache
def _entry_points(kind: Kind) -> list[Any]:
    from importlib.metadata import entry_points  # (slow to import, and most need none)

    return list(entry_points(group=f"sightline.{kind}"))


def _import(module: str) -> Any:
    if module in sys.modules:
        return sys.modules[module]
    # Last, so that no file of the current folder can stand in for an installed module.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise ConfigError(f"plug-in {module}: there is no such module here") from None
        raise ConfigError(f"plug-in {module}: {_reason(error)}") from None
    except (Exception, SystemExit) as error:
        raise ConfigError(f"plug-in {module}: {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    """Why an import failed, in one line, with the line of the plug-in where it did."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "importlib" not in file and file != __file__:
            place = f", line {trace.tb_lineno} of {os.path.basename(file)}"
        trace = trace.tb_next
    text = " ".join(str(error).split())[:200]
    return f"cannot be imported ({type(error).__name__}: {text}{place})"
