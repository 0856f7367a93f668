"""Text, JSON and fields of the files people give us, with errors that name the place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sightline.data.dataset import SPLITS
from sightline.errors import DataError
from sightline.files import DATA_BYTES, read_bytes
from sightline.parsing import parse_json

# Other people's names for our splits. Karpathy's `restval` is the part of COCO's validation set
# that everyone trains on.
_SPLIT_NAMES = {"val": "dev", "valid": "dev", "validation": "dev", "restval": "train"}


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark.

    Broken bytes become U+FFFD, so that `data.check` finds and names one bad caption instead of the
    other forty thousand staying unread.
    """
    try:
        return read_bytes(path, DATA_BYTES).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file that are not blank, with their numbers.

    Only a newline ends a line: `str.splitlines` would also cut a caption at U+2028 or U+0085.
    """
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            yield number, line


def load_json(path: Path) -> Any:
    """The content of a JSON file, or a `DataError` with the place where it breaks off."""
    return parse_json(read_text(path), str(path), DataError)


def field(record: Any, key: str, kind: type | tuple[type, ...], where: str) -> Any:
    """`record[key]`, which must be there and of that kind; `where` names the place in an error."""
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected an object with '{key}', found {type(record).__name__}")
    if key not in record:
        raise DataError(f"{where}: '{key}' is missing")
    value = record[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise DataError(f"{where}: '{key}' must not be {type(value).__name__}")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise DataError(f"{where}: '{key}' is too large a number")
    return value


def text_field(record: Any, key: str, where: str) -> str:
    """`field` of a text that is not blank."""
    text: str = field(record, key, str, where)
    if not text.strip():
        raise DataError(f"{where}: '{key}' must not be blank")
    return text


def optional_field(
    record: Any, key: str, kind: type | tuple[type, ...], default: Any, where: str
) -> Any:
    """`field`, or the default where the record has no such key."""
    if isinstance(record, dict) and key not in record:
        return default
    return field(record, key, kind, where)


def split_name(name: Any, where: str) -> str | None:
    """Our name of a split, from whatever the file calls it."""
    if name is None:
        return None
    split = _SPLIT_NAMES.get(name, name) if isinstance(name, str) else name
    if split not in SPLITS:
        raise DataError(
            f"{where}: unknown split {str(name)[:40]!r}; use one of {', '.join(SPLITS)} or none"
        )
    return str(split)
