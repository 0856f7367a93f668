"""Damage to files: of their bytes, and by the grammar of their format."""

import json
import re
import sqlite3
import struct
from random import Random
from typing import Any

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**64), 10**400, 0.5, -0.0, 1e308, 5e-324, "", "x",
    "../../../etc/passwd", "/dev/zero", "\x1b[2J", "a\nb", "\x00", "\ud800", "é" * 5000, [], {},
    [[]], [None], {"": None}, {"name": 3}, [1, "x", []], {"__class__": "os.system"}, "NaN",
    "step-1",
)  # fmt: skip

TEXTS = (
    b"", b"null", b"[]", b"{}", b"[" * 100_000, b"{" * 9_999, b'{"a":' * 50_000, b"9" * 5_000,
    b"NaN", b"-Infinity", b"1e999999", "{}".encode("utf-16"), b"\xef\xbb\xbf", b"\xff" * 100,
    b"\x00" * 100,
    b"&a [*a, *a]", b"a: &a [x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]", b"!!python/name:os.system",
    b"? [a]\n: b", b"- " * 3_000, b"PK\x03\x04", b"\x80\x04cos\nsystem\n(S'id'\ntR.", b"\n" * 1000,
)  # fmt: skip


def damage(content: bytes, random: Random) -> bytes:
    """Some bytes of a file changed, cut, doubled or replaced by a hostile text."""
    kind = random.randrange(8)
    if kind == 0 or not content:
        return random.choice(TEXTS)
    place, other = sorted(random.randrange(len(content) + 1) for _ in range(2))
    match kind:
        case 1:
            return content[:place]
        case 2:
            return content[:place] + content[other:]
        case 3:
            return (
                content[:other] + content[place:other] * random.randrange(1, 50) + content[other:]
            )
        case 4:
            return content[:place] + random.choice(TEXTS) + content[place:]
        case 5:
            return content[:place] + random.randbytes(random.randrange(1, 64)) + content[other:]
        case _:
            changed = bytearray(content)
            for _ in range(random.randrange(1, 9)):
                changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
            return bytes(changed)


def damage_json(content: bytes, random: Random) -> bytes:
    """A value, key or item of JSON replaced, removed or doubled; sometimes its bytes damaged."""
    if random.random() < 0.25:
        return damage(content, random)
    lines = content.split(b"\n")
    try:
        value = json.loads(content)
    except ValueError:  # JSON lines
        number = random.randrange(len(lines))
        if lines[number].strip():
            lines[number] = damage_json(lines[number], random)
        return b"\n".join(lines)
    for _ in range(random.randrange(1, 4)):
        value = _changed(value, random)
    return json.dumps(value, ensure_ascii=random.random() < 0.5).encode(errors="surrogatepass")


def _changed(value: Any, random: Random) -> Any:
    if not isinstance(value, list | dict) or not value or random.random() < 0.1:
        return random.choice(HOSTILE)
    if isinstance(value, list):
        number = random.randrange(len(value))
        match random.randrange(4):
            case 0:
                return value[:number] + value[number + 1 :]
            case 1:
                return value[:number] + [value[number]] * 3 + value[number + 1 :]
            case _:
                changed = _changed(value[number], random)
                return [*value[:number], changed, *value[number + 1 :]]
    key = random.choice(list(value))
    match random.randrange(5):
        case 0:
            return {name: inner for name, inner in value.items() if name != key}
        case 1:
            return value | {random.choice(["", "x", "name", "__proto__", "é"]): value[key]}
        case _:
            return value | {key: _changed(value[key], random)}


def damage_text(content: bytes, random: Random) -> bytes:
    """A piece of text between its signs (commas, tabs, quotes, brackets, line ends) replaced."""
    if random.random() < 0.25:
        return damage(content, random)
    pieces = re.split(rb"([,\t\n\"<>=/])", content)
    for _ in range(random.randrange(1, 4)):
        number = random.randrange(len(pieces))
        other = str(random.choice(HOSTILE)).encode(errors="surrogatepass")
        signs = (b",", b"\t", b"\n", b'"', b"<", b">", b"", b"\x00", b'"' * 3, b"\r", b",\n" * 500)
        pieces[number] = random.choice((other, random.choice(signs), random.choice(pieces)))
    return b"".join(pieces)


def damage_safetensors(content: bytes, random: Random) -> bytes:
    """The header of a safetensors file changed: its names, types, shapes, places and metadata."""
    if random.random() < 0.3:
        return damage(content, random)
    (length,) = struct.unpack("<Q", content[:8])
    header = damage_json(content[8 : 8 + length], random)
    if random.random() < 0.5 and b"__metadata__" in header:  # JSON in a text of JSON
        header = _inner_json(header, random)
    return struct.pack("<Q", len(header)) + header + content[8 + length :]


def _inner_json(header: bytes, random: Random) -> bytes:
    try:
        values = json.loads(header)
        for name, text in values["__metadata__"].items():
            values["__metadata__"][name] = damage_json(text.encode(), random).decode("latin-1")
    except (ValueError, LookupError, TypeError, AttributeError):
        return header
    return json.dumps(values).encode(errors="surrogatepass")


def damage_sqlite(content: bytes, random: Random) -> bytes:
    """A cell of a table replaced, or the table itself; sometimes the file's bytes damaged."""
    if random.random() < 0.4:
        return damage(content, random)
    database = sqlite3.connect(":memory:")
    database.deserialize(content)
    database.execute("PRAGMA ignore_check_constraints = ON")
    ours = "type = 'table' AND name NOT LIKE 'sqlite%'"
    tables = [name for (name,) in database.execute(f"SELECT name FROM sqlite_master WHERE {ours}")]
    for _ in range(random.randrange(1, 4)):
        table = random.choice(tables)
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        column, value = random.choice(columns), random.choice(HOSTILE)
        if isinstance(value, list | dict) or (isinstance(value, int) and abs(value) >= 2**63):
            value = json.dumps(value)[:300]
        if isinstance(value, str):
            value = (
                value.encode(errors="replace")
                if random.random() < 0.3
                else value.replace("\ud800", "?")
            )
        try:
            if random.random() < 0.1:
                database.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
            else:
                database.execute(f"UPDATE {table} SET {column} = ?", (value,))
        except sqlite3.Error:
            continue
    database.commit()
    return database.serialize()


def damage_tar(content: bytes, random: Random) -> bytes:
    """A field of a member's header replaced, with the right checksum."""
    if random.random() < 0.3:
        return damage(content, random)
    blocks = [
        at for at in range(0, len(content) - 512, 512) if content[at + 257 : at + 262] == b"ustar"
    ]
    begin, size = random.choice(
        ((0, 100), (100, 8), (124, 12), (136, 12), (156, 1), (157, 100), (345, 155))
    )
    kind = random.choice(b"01234567LKSxgVMN").to_bytes()  # of a member
    hostile = (b"7" * size, b"\x80" + b"\xff" * size, b"\xff" * size, b"", b"-1", b"../" * 40)
    other = random.choice((*hostile, kind))
    changed = bytearray(content)
    at = random.choice(blocks)
    changed[at + begin : at + begin + size] = other[:size].ljust(size, b"\0")
    changed[at + 148 : at + 156] = b" " * 8
    changed[at + 148 : at + 156] = b"%06o\0 " % sum(changed[at : at + 512])
    return bytes(changed)
