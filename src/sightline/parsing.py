"""JSON, YAML and CSV from outside, as plain values, within bounds.

What these functions give holds finite numbers, text, lists and groups of keys, nested no deeper
than `DEPTH`. What the values must be is said by dataclasses (`sightline.config`).
"""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml

from sightline.errors import ConfigError, DataError, SightlineError
from sightline.files import ANY_SIZE, CONFIG_BYTES, open_regular, read_bytes

DEPTH = 40  # lists and groups inside one another
_LINE = 64_000_000  # bytes of a line, letters of a cell: a picture may be in it
_DIGITS = 300  # of a whole number


def read_text(path: Path, limit: int, error: type[SightlineError]) -> str:
    """The text of a UTF-8 file, with or without a byte order mark."""
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except OSError as reason:
        raise error(f"{path}: cannot be read ({reason.strerror})") from None
    except UnicodeDecodeError:
        raise error(f"{path}: is not UTF-8 text; save it as UTF-8") from None


def read_json(
    path: Path, limit: int = CONFIG_BYTES, error: type[SightlineError] = ConfigError
) -> Any:
    """The content of a JSON file of at most `limit` bytes."""
    return parse_json(read_text(path, limit, error), str(path), error)


def parse_json(
    text: str | bytes,
    where: str,
    error: type[SightlineError] = ConfigError,
    *,
    allow_nan: bool = False,
) -> Any:
    """The content of JSON text; `where` begins the message of an error.

    >>> parse_json('{"beam": NaN}', "options.json")
    Traceback (most recent call last):
    sightline.errors.ConfigError: options.json: not JSON (NaN is not a number)
    """
    try:
        constant = float if allow_nan else _refuse_constant
        content = json.loads(text, parse_constant=constant, parse_int=_whole_number)
    except json.JSONDecodeError as reason:
        place = f"line {reason.lineno}, column {reason.colno}"
        raise error(f"{where}: not JSON ({reason.msg} at {place})") from None
    except RecursionError:
        raise error(f"{where}: not JSON that is read here (nested too deeply)") from None
    except ValueError as reason:  # not UTF-8, or a number of thousands of digits
        raise error(f"{where}: not JSON ({str(reason).partition(':')[0]})") from None
    _check_depth(content, where, error)
    return content


def read_json_lines(
    path: Path, error: type[SightlineError] = DataError
) -> Iterator[tuple[str, Any]]:
    """What each line of a file holds, one line in memory at a time, after where it is.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.jsonl"
    >>> _ = path.write_text('{"caption": "a dog"}\\n')
    >>> [row for where, row in read_json_lines(path)]
    [{'caption': 'a dog'}]
    """
    for where, line in json_lines(path, error):
        yield where, parse_json(line, where, error)


def json_lines(path: Path, error: type[SightlineError] = DataError) -> Iterator[tuple[str, bytes]]:
    """The lines of a file as they are, each after where it is."""
    try:
        with open_regular(path, ANY_SIZE) as file:
            for number, line in enumerate(iter(lambda: file.readline(_LINE + 1), b""), 1):
                where = f"{path}, line {number}"
                if len(line) > _LINE:
                    raise error(f"{where}: is longer than {_LINE} bytes")
                yield where, line
    except OSError as reason:
        raise error(f"{path}: cannot be read ({reason.strerror})") from None


def read_csv(
    path: Path, delimiter: str = ",", error: type[SightlineError] = DataError
) -> tuple[list[str], Iterator[list[str]]]:
    """The names of a table's columns, and its rows, one in memory at a time: a cell for each name.

    Cells that a row lacks are empty, and those behind the last name are left out.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("image,caption\\n1.jpg\\n")
    >>> names, rows = read_csv(path)
    >>> [dict(zip(names, row)) for row in rows]
    [{'image': '1.jpg', 'caption': ''}]
    """
    rows = _csv_rows(path, delimiter, error)
    names = next(rows, [])
    width = len(names)
    return names, ((row + [""] * width)[:width] for row in rows if row)


def _csv_rows(path: Path, delimiter: str, error: type[SightlineError]) -> Iterator[list[str]]:
    csv.field_size_limit(_LINE)
    try:
        with (
            open_regular(path, ANY_SIZE) as file,
            io.TextIOWrapper(file, "utf-8-sig", newline="") as text,
        ):
            yield from csv.reader(text, delimiter=delimiter)
    except OSError as reason:
        raise error(f"{path}: cannot be read ({reason.strerror})") from None
    except (csv.Error, UnicodeDecodeError) as reason:
        raise error(f"{path}: cannot be read as CSV in UTF-8 ({reason})") from None


def _whole_number(digits: str) -> int:
    if len(digits) > _DIGITS:  # no floating-point number holds it
        raise ValueError("a number of too many digits")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _check_depth(content: Any, where: str, error: type[SightlineError]) -> None:
    level = [content]
    for _ in range(DEPTH):
        level = [item for part in level for item in _inside(part)]
        if not level:
            return
    raise error(f"{where}: nested too deeply")


def _inside(part: Any) -> Iterator[Any]:
    items = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return (item for item in items if isinstance(item, dict | list))


def parse_yaml(text: str, where: str) -> Any:
    """The content of YAML text: each key once, and no references, which could unfold to anything.

    >>> parse_yaml("{rate: 5e-4, epochs: 3}", "recipe.yaml")
    {'rate': 0.0005, 'epochs': 3}
    >>> parse_yaml("[&a [x], *a]", "recipe.yaml")
    Traceback (most recent call last):
    sightline.errors.ConfigError: recipe.yaml: not YAML that is read here (write out what *a is)
    """
    try:
        content = yaml.load(text, _Loader)
    except yaml.YAMLError as reason:
        raise ConfigError(f"{where}: not YAML ({' '.join(str(reason).split())[:200]})") from None
    except RecursionError:
        raise ConfigError(f"{where}: nested too deeply") from None
    except (ValueError, OverflowError) as reason:
        message = str(reason).partition(":")[0]
        raise ConfigError(f"{where}: not YAML that is read here ({message})") from None
    return content


class _Loader(yaml.SafeLoader):
    """Plain values alone."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise ValueError(f"write out what *{self.peek_event().anchor} is")  # type: ignore[no-untyped-call]
        self._depth += 1
        if self._depth > DEPTH:
            raise RecursionError
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"'{key}' is given twice")
        return super().construct_mapping(node, deep)


# YAML 1.1 takes 5e-4 for text; a person means a number (and YAML 1.2 agrees).
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)
