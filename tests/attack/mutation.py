"""Damage to files: of their bytes, of their text, and of the values in their JSON or YAML."""

import json
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
