"""Dataclasses from plain dictionaries, with errors that name the key and the nearest valid one.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Size:
...     width: int = 512
>>> from_dict(Size, {"width": 256}, "model")
Size(width=256)
>>> from_dict(Size, {"widht": 256}, "model")
Traceback (most recent call last):
sightline.errors.ConfigError: model: no key is called 'widht'; did you mean 'width'?
"""

import contextlib
import dataclasses
import difflib
import types
import typing
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from sightline.errors import ConfigError

T = TypeVar("T")


def from_dict(cls: type[T], values: Any, where: str) -> T:
    """An instance of a dataclass; `where` is the path of keys that leads here."""
    if not isinstance(values, dict):
        raise ConfigError(f"{where}: must be a group of keys, not {_show(values)}")
    hints = typing.get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for key in values:
        if key not in names:
            raise ConfigError(f"{where}: no key is called '{key}'; {nearest(str(key), names)}")
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        required = field.default is field.default_factory is dataclasses.MISSING
        if required and field.name not in values:
            raise ConfigError(f"{where}: '{field.name}' is missing")
    return cls(
        **{key: _convert(hints[key], value, f"{where}.{key}") for key, value in values.items()}
    )


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
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(known)}"


def _convert(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        choices = [choice for choice in arguments if choice is not type(None)]
        return _convert(choices[0], value, where)
    if origin is Literal:
        if value not in arguments:
            known = ", ".join(str(argument) for argument in arguments)
            raise ConfigError(f"{where}: must be one of {known}, not {_show(value)}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where}: must be a list, not {_show(value)}")
        return tuple(_convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"{where}: must be a group of keys, not {_show(value)}")
        return {
            str(key): _convert(arguments[1], item, f"{where}.{key}") for key, item in value.items()
        }
    if dataclasses.is_dataclass(kind):
        return from_dict(typing.cast(type, kind), value, where)
    if kind is float and isinstance(value, int | str) and not isinstance(value, bool):
        # YAML 1.1 takes 5e-4 for text; a person means a number.
        with contextlib.suppress(ValueError):
            return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{where}: must be {_KINDS.get(kind, kind.__name__)}, not {_show(value)}")
    return value


_KINDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _show(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
