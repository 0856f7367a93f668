"""Hostile pictures: of every format and mode, damaged, lying about their size, or no pictures."""

import io
import struct
import zlib
from functools import partial
from random import Random

from PIL import Image

from attack.law import Case
from attack.mutation import damage
from sightline.pictures import open_picture

KINDS = {
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "JPEG": ("L", "RGB", "CMYK"),
    "GIF": ("L", "P", "RGB"),
    "BMP": ("1", "L", "P", "RGB"),
    "TIFF": ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F", "LAB"),
    "WEBP": ("RGB", "RGBA"),
    "PPM": ("RGB",),
    "EPS": ("RGB",),
    "PCX": ("RGB",),
    "TGA": ("RGB",),
}
_OPTIONS = ("tiff_lzw", "tiff_deflate", "packbits", "raw")


def hostile_picture(random: Random) -> bytes:
    """A file that a seed makes."""
    if random.random() < 0.1:
        return _bomb(random)
    kind = random.choice(list(KINDS))
    size = (random.choice((1, 2, 17, 300)), random.choice((1, 3, 40, 301)))
    mode = random.choice(KINDS[kind])
    picture = Image.new(mode, size) if mode != "LAB" else Image.new("RGB", size).convert("L")
    options: dict[str, object] = {}
    if kind == "TIFF":
        options["compression"] = random.choice(_OPTIONS)
    if kind == "JPEG":
        options["progressive"] = random.random() < 0.5
    if random.random() < 0.3 and kind in ("JPEG", "PNG", "WEBP"):
        exif = Image.Exif()
        exif[0x0112] = random.choice((0, 1, 6, 8, 9, 65535))
        options["exif"] = exif.tobytes()[: random.randrange(6, 40)]
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    content = stream.getvalue()
    for _ in range(random.randrange(3)):
        content = damage(content, random)
    return content


def _bomb(random: Random) -> bytes:
    """A header that claims a size from one pixel to the largest the format can, and little data."""
    width, height = (random.choice((0, 1, 5_000, 20_000, 65_535, 2**31 - 1)) for _ in range(2))
    data = zlib.compress(bytes(random.choice((0, 1_000, 1_000_000))))
    match random.randrange(4):
        case 0:
            bits, colours = random.choice((1, 8, 16)), random.choice((0, 2, 3, 4, 6))
            interlaced = random.randrange(2)
            head = struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, interlaced)
            return b"\x89PNG\r\n\x1a\n" + b"".join(
                _chunk(*part) for part in ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
            )
        case 1:
            return (
                b"GIF89a" + struct.pack("<HHBBB", width % 65536, height % 65536, 0xF7, 0, 0) + data
            )
        case 2:
            sizes = (99, 0, 54, 40, width, -height, 1, 24, 0, 0, 1, 1, 0, 0)
            return b"BM" + struct.pack("<IIIIiiHHIIiiII", *sizes) + data
        case _:
            tags = ((256, width), (257, height), (258, 32), (259, 1), (262, 1), (273, 8), (277, 1),
                    (278, height), (279, 2**31 - 1), (339, 3))  # fmt: skip
            entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
            return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + data


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def picture_case(seed: int) -> Case:
    """The picture of a seed, opened as commands open it."""
    return Case(f"picture {seed}", partial(_open, seed))


def _open(seed: int) -> None:
    random = Random(seed)
    content = hostile_picture(random)
    picture = open_picture(content, reduced_to=random.choice((None, 64, 448)))
    assert picture.mode == "RGB"
    assert picture.width > 0
    assert picture.height > 0
