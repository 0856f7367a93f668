"""Dataclasses from plain dictionaries: the one place where types, ranges and lengths are checked.

A field's annotation says what it may be; `Annotated[int, Range(1, 64)]` bounds it. An error names
the key, what it must be, and for a key that does not exist the nearest one.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Size:
...     width: Annotated[int, Range(1, 4096)] = 512
>>> from_dict(Size, {"width": 256}, "model")
Size(width=256)
>>> from_dict(Size, {"widht": 256}, "model")
Traceback (most recent call last):
sightline.errors.ConfigError: model: no key is called 'widht'; did you mean 'width'?
>>> from_dict(Size, {"width": 0}, "model")
Traceback (most recent call last):
sightline.errors.ConfigError: model.width: must be at least 1, not 0
"""

import dataclasses
import difflib
import functools
import math
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from sightline.errors import ConfigError, SightlineError
from sightline.printing import printable

T = TypeVar("T")
Convert = Callable[[Any], Any]
_WHOLE = 2**63  # whole numbers are smaller, as everything that computes with them wants


@dataclass(frozen=True)
class Range:
    """The least and the greatest number that a field may be, or items or letters it may have."""

    least: float
    most: float = math.inf


Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
Positive = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]
Width = Annotated[int, Range(1, 16_384)]  # of a layer
Layers = Annotated[int, Range(1, 64)]


class _Wrong(Exception):
    """A value that is not what it must be; the keys that lead to it are added on the way out."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.path = ""


def from_dict(
    cls: type[T],
    values: Any,
    where: str,
    *,
    error: type[SightlineError] = ConfigError,
    strict: bool = True,
    joint: str = ".",
) -> T:
    """An instance of a dataclass; `where` and the keys joined to it begin the message of an error.

    With `strict=False` keys that the dataclass does not have are left out: other people's files
    hold more than we read.
    """
    try:
        instance: T = _reader(typing.cast(Any, cls), strict)(values)
        return instance
    except _Wrong as wrong:
        path = wrong.path.removeprefix(".")
        separator = "" if not path or path.startswith("[") else joint
        raise error(f"{where}{separator}{path}: {wrong}") from None


def to_dict(config: Any) -> dict[str, Any]:
    """The inverse of `from_dict`: plain values, ready for YAML and JSON."""
    plain: dict[str, Any] = _plain(dataclasses.asdict(config))
    return plain


def require_at_least(least: float, where: str, **values: float | None) -> None:
    """Refuse numbers that are too small; `None` stands for no number.

    >>> require_at_least(1, "batch", size=0)
    Traceback (most recent call last):
    sightline.errors.ConfigError: batch.size: must be at least 1, not 0
    """
    for name, value in values.items():
        if value is not None and value < least:
            raise ConfigError(f"{where}.{name}: must be at least {least}, not {value}")


def nearest(word: str, known: list[str]) -> str:
    """A hint for a name that is not known."""
    near = difflib.get_close_matches(word[:100], known, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(known)}"


@functools.cache
def _reader(kind: Any, strict: bool) -> Convert:
    """What turns a plain value into one of a kind, or raises `_Wrong`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin is Annotated:
        return _bounded(_reader(arguments[0], strict), arguments[1])
    if origin in (Union, types.UnionType):
        return _union(arguments, strict)
    if origin is Literal:
        return _literal(arguments)
    if origin in (tuple, list):
        return _sequence(origin, arguments, strict)
    if origin is dict:
        return _dictionary(_reader(arguments[1], strict))
    if dataclasses.is_dataclass(kind):
        return _record(typing.cast(type, kind), strict)
    return _plain_value(kind)


def _record(cls: type, strict: bool) -> Convert:
    hints = typing.get_type_hints(cls, include_extras=True)
    fields = {f.name: _reader(hints[f.name], strict) for f in dataclasses.fields(cls) if f.init}
    required = [
        f.name
        for f in dataclasses.fields(cls)
        if f.init and f.default is f.default_factory is dataclasses.MISSING
    ]

    def read(values: Any) -> Any:
        if not isinstance(values, dict):
            raise _Wrong(f"must be a group of keys, not {_show(values)}")
        arguments = {}
        for key, value in values.items():
            if key not in fields:
                if strict:
                    raise _Wrong(
                        f"no key is called {_show(str(key))}; {nearest(str(key), list(fields))}"
                    )
                continue
            try:
                arguments[key] = fields[key](value)
            except _Wrong as wrong:
                wrong.path = f".{key}{wrong.path}"
                raise
        for name in required:
            if name not in arguments:
                raise _Wrong(f"'{name}' is missing")
        return cls(**arguments)

    return read


def _union(arguments: tuple[Any, ...], strict: bool) -> Convert:
    choices = [_reader(choice, strict) for choice in arguments if choice is not type(None)]
    may_be_none = type(None) in arguments

    def read(value: Any) -> Any:
        if value is None and may_be_none:
            return None
        first = None
        for convert in choices:
            try:
                return convert(value)
            except _Wrong as wrong:
                first = first or wrong
        assert first is not None
        raise first

    return read


def _literal(arguments: tuple[Any, ...]) -> Convert:
    def read(value: Any) -> Any:
        for argument in arguments:
            if type(value) is type(argument) and value == argument:
                return value
        known = ", ".join(str(argument) for argument in arguments)
        raise _Wrong(f"must be one of {known}, not {_show(value)}")

    return read


def _sequence(origin: type, arguments: tuple[Any, ...], strict: bool) -> Convert:
    any_length = origin is list or arguments[-1] is Ellipsis
    readers = [_reader(kind, strict) for kind in arguments if kind is not Ellipsis]

    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise _Wrong(f"must be a list, not {_show(value)}")
        if not any_length and len(value) != len(readers):
            raise _Wrong(f"must be a list of {len(readers)}, not of {len(value)}")
        items = []
        for n, item in enumerate(value):
            try:
                items.append(readers[0 if any_length else n](item))
            except _Wrong as wrong:
                wrong.path = f"[{n}]{wrong.path}"
                raise
        return origin(items)

    return read


def _dictionary(convert: Convert) -> Convert:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _Wrong(f"must be a group of keys, not {_show(value)}")
        items = {}
        for key, item in value.items():
            try:
                items[str(key)] = convert(item)
            except _Wrong as wrong:
                wrong.path = f".{key}{wrong.path}"
                raise
        return items

    return read


def _bounded(convert: Convert, bounds: Range) -> Convert:
    def read(value: Any) -> Any:
        converted = convert(value)
        if isinstance(converted, int | float):
            if converted < bounds.least:
                raise _Wrong(f"must be at least {bounds.least}, not {_show(value)}")
            if converted > bounds.most:
                raise _Wrong(f"must be at most {bounds.most}, not {_show(value)}")
        elif converted is not None and not bounds.least <= len(converted) <= bounds.most:
            what = "letters" if isinstance(converted, str) else "entries"
            raise _Wrong(
                f"must have from {bounds.least} to {bounds.most} {what}, not {len(converted)}"
            )
        return converted

    return read


def _plain_value(kind: Any) -> Convert:
    name = _KINDS.get(kind, kind.__name__)

    def read(value: Any) -> Any:
        if kind is float and type(value) is int and abs(value) < _WHOLE:
            return float(value)
        if type(value) is not kind if kind in _KINDS else not isinstance(value, kind):
            raise _Wrong(f"must be {name}, not {_show(value)}")
        if (kind is int and abs(value) >= _WHOLE) or (kind is float and not math.isfinite(value)):
            raise _Wrong(f"must be {name} that is not too large, not {_show(value)}")
        return value

    return read


_KINDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _show(value: Any) -> str:
    if isinstance(value, int) and abs(value) >= _WHOLE:
        return "a number of many digits"
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return printable(text if len(text) <= 60 else f"{text[:60]} …")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
