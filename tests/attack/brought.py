"""Files that people bring: captions to audit or compare, tables of pictures, shards, sidecars."""

import gzip
import io
import json
import tarfile
from functools import partial
from pathlib import Path

import pyarrow
from PIL import Image
from pyarrow import parquet

from attack.mutation import damage, damage_json, damage_tar, damage_text
from attack.target import Target, write
from sightline.audit.deliveries import read_delivery
from sightline.blind.systems import captions_of
from sightline.bulk.formats import open_format
from sightline.bulk.items import Item
from sightline.bulk.parquet import ParquetFile
from sightline.bulk.sources import open_source
from sightline.bulk.xmp import read_texts, with_texts
from sightline.pictures import open_picture

ROWS = [{"image": "1.jpg", "caption": "a dog runs"}, {"image": "2.jpg", "caption": "a red ball"}]


def brought_files(folder: Path) -> dict[str, Target]:
    """Whole files, by name."""
    images = folder / "images"
    for name in ("1.jpg", "2.jpg"):
        write(images / name, _jpeg())
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    sheet = "image,caption\n" + "".join(f"{row['image']},{row['caption']}\n" for row in ROWS)
    results = json.dumps([{"image_id": n, "caption": row["caption"]} for n, row in enumerate(ROWS)])
    coco = {"images": [{"id": 1, "file_name": "1.jpg"}],
            "annotations": [{"image_id": 1, "caption": "a dog runs"}]}  # fmt: skip
    delivered = {
        "given.csv": (sheet, damage_text),
        "given.tsv": (sheet.replace(",", "\t"), damage_text),
        "given.jsonl": (lines, damage_json),
        "given.json": (results, damage_json),
        "given-coco.json": (json.dumps(coco), damage_json),
        "given.parquet": (_parquet(), damage),
    }
    targets = {}
    for name, (content, how) in delivered.items():
        file = write(folder / name, content)
        targets[name] = Target(file, how, partial(read_delivery, file, images))
    metadata = write(folder / "described" / "metadata.jsonl", lines.replace("image", "file_name"))
    targets["metadata.jsonl"] = Target(
        metadata, damage_json, partial(read_delivery, metadata.parent, images)
    )
    sidecar = write(folder / "sidecars" / "1.txt", "a dog runs\n")
    targets["sidecar"] = Target(sidecar, damage, partial(read_delivery, sidecar.parent, images))
    targets |= _tables(folder, sheet, lines) | _shards(folder) | _outputs(folder, lines)
    for name, content, how in (
        ("system.csv", sheet, damage_text),
        ("system.json", results, damage_json),
    ):
        file = write(folder / name, content)
        targets[name] = Target(file, how, partial(_system, file, images))
    xmp = folder / "1.xmp"
    xmp.write_bytes(with_texts(xmp, "a dog runs"))
    targets["xmp"] = Target(xmp, damage_text, partial(_xmp, xmp))
    return targets


def _tables(folder: Path, sheet: str, lines: str) -> dict[str, Target]:
    """Tables that name pictures, and a list of paths."""
    targets = {}
    for name, content, how in (
        ("pictures.csv", sheet, damage_text),
        ("pictures.jsonl", lines, damage_json),
        ("pictures.parquet", _parquet(), damage),
    ):
        file = write(folder / "images" / name, content)
        targets[name] = Target(file, how, partial(_all, file))
    return targets


def _shards(folder: Path) -> dict[str, Target]:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as shard:
        for name in ("1.jpg", "long/" * 30 + "2.jpg"):
            member = tarfile.TarInfo(name)
            member.size = len(_jpeg())
            shard.addfile(member, io.BytesIO(_jpeg()))
    plain = write(folder / "shards" / "shard.tar", stream.getvalue())
    small = write(folder / "shards" / "shard.tar.gz", gzip.compress(stream.getvalue(), mtime=0))
    return {
        "shard.tar": Target(plain, damage_tar, partial(_all, plain)),
        "shard.tar.gz": Target(small, damage, partial(_all, small)),
    }


def _outputs(folder: Path, lines: str) -> dict[str, Target]:
    """Outputs of an earlier job, which another is to add to."""
    contents = {
        "out.jsonl": (lines.replace("image", "path"), damage_json),
        "out.csv": (open_format(Path("out.csv")).header() + b"1.jpg,,a dog runs\n", damage_text),
        "out.parquet": (_caption_parquet(), damage),
        "coco.json": (
            json.dumps([{"image_id": 1, "caption": "a dog", "file_name": "1.jpg"}]),
            damage_json,
        ),
    }
    targets = {}
    for name, (content, how) in contents.items():
        file = write(folder / "outputs" / name, content)
        targets[name] = Target(file, how, partial(_existing, file))
    return targets


def _caption_parquet() -> bytes:
    form, stream = open_format(Path("out.parquet")), io.BytesIO()
    assert isinstance(form, ParquetFile)
    form.write(stream, iter([{"path": "1.jpg", "sha256": "0" * 64, "caption": "a dog runs"}]))
    return stream.getvalue()


def _existing(file: Path) -> None:
    """What a job that adds to an output reads of it first."""
    form = open_format(file, "coco" if file.suffix == ".json" else None)
    pictures = [*form.existing(), *(form.read_rows() if form.grows else ())]
    item = Item.of_file(Path("1.jpg"))
    form.claim(item)
    form.has_own(item)
    assert all(isinstance(name, str) for name, _ in pictures)


def _all(file: Path) -> None:
    for item in open_source(file):
        assert item.name
        if isinstance(item, Item) and item.url is None:
            open_picture(item.read(), reduced_to=64)


def _system(file: Path, images: Path) -> None:
    pictures = [Item.of_file(images / name, images) for name in ("1.jpg", "2.jpg")]
    captions_of(file, pictures, file.parent)


def _xmp(file: Path) -> None:
    read_texts(file)
    with_texts(file, "another")


def _jpeg() -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(stream, "JPEG")
    return stream.getvalue()


def _parquet() -> bytes:
    table = pyarrow.table({name: [f"{n}.jpg" for n in (1, 2)] for name in ("image", "caption")})
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()
