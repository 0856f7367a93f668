"""JSON files that other programs import whole: COCO results, Label Studio, FiftyOne."""

import functools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, ClassVar

from sightline.bulk.format import Format, read_rows
from sightline.bulk.items import Item, key_of
from sightline.bulk.records import Row
from sightline.errors import DataError, PictureError
from sightline.files import DATA_BYTES, atomic_write
from sightline.parsing import read_json


class Array(Format):
    """A JSON file whose elements are made of rows."""

    grows: ClassVar[bool] = False

    def element(self, row: Row) -> Row:
        raise NotImplementedError

    def id_of(self, element: Row) -> str:
        """What an element says its picture is."""
        raise NotImplementedError

    def has_own(self, item: Item) -> bool:
        return self._id_of_name(item.name) in self._earlier_ids

    @functools.cached_property
    def _earlier_ids(self) -> set[str]:
        return {self.id_of(element) for element in self.earlier()}

    def _id_of_name(self, name: str) -> str:
        return name

    def earlier(self) -> list[Row]:
        """The elements of the output as it was before this job."""
        if not self.output.exists():
            return []
        elements = read_json(self.output, DATA_BYTES, DataError)
        if not (isinstance(elements, list) and all(map(self.is_element, elements))):
            raise DataError(f"{self.output}: not such a file; choose another output")
        return elements

    def is_element(self, element: Any) -> bool:
        """Whether an element of an earlier output is one that `id_of` can be asked about."""
        raise NotImplementedError

    def elements(self) -> Iterator[Row]:
        """What the output will hold: earlier pictures, and those of this job."""
        new = {self._id_of_name(row["path"]) for row in read_rows(self.rows)}
        yield from (e for e in self.earlier() if self.id_of(e) not in new)
        yield from (self.element(row) for row in read_rows(self.rows))

    def assemble(self) -> None:
        elements = self.elements()
        with atomic_write(self.output) as file:
            file.write("[")
            for number, element in enumerate(elements):
                file.write((",\n" if number else "\n") + json.dumps(element, ensure_ascii=False))
            file.write("\n]\n")


class CocoResults(Array):
    """`image_id` and `caption`, as COCO's evaluation reads them.

    The id is the number that the file is named by, as COCO's own are (`000000000042.jpg`, or
    `COCO_val2014_000000000042.jpg`); of other pictures it is the whole name.
    """

    def __init__(self, output: Path, **options: Any) -> None:
        super().__init__(output, **options)
        self._owners: dict[int, int] = {}  # id -> the first picture of the job that has it

    def claim(self, item: Item) -> None:
        self._owners.setdefault(key_of(self._id_of_name(item.name)), item.key)

    def has_own(self, item: Item) -> bool:
        number = self._id_of_name(item.name)
        if self._owners[key_of(number)] != item.key:
            raise PictureError(
                f"{item.name} has the image_id {number} of another picture: rename it, or choose "
                "another --format"
            )
        return super().has_own(item)

    def _id_of_name(self, name: str) -> str:
        return str(image_id(name))

    def element(self, row: Row) -> Row:
        return {"image_id": image_id(row["path"]), "caption": row["caption"]}

    def is_element(self, element: Any) -> bool:
        return isinstance(element, dict) and isinstance(element.get("image_id"), int | str)

    def id_of(self, element: Row) -> str:
        return str(element["image_id"])


def image_id(name: str) -> int | str:
    """
    >>> image_id("val2014/COCO_val2014_000000000042.jpg"), image_id("7.jpg"), image_id("dog_7.jpg")
    (42, 7, 'dog_7.jpg')
    """
    number = re.fullmatch(r"(?:COCO_.*_)?(\d{1,18})", PurePath(name).stem, re.ASCII)
    return int(number[1]) if number else name


class LabelStudioTasks(Array):
    """Tasks with the caption as a prediction, for review in Label Studio.

    Its labelling configuration has an Image named `image` and a TextArea named `caption`. The
    score of a prediction is the mean support of the words that were checked.
    """

    def is_element(self, element: Any) -> bool:
        about = element.get("meta") if isinstance(element, dict) else None
        return isinstance(about, dict) and isinstance(about.get("path"), str)

    def id_of(self, element: Row) -> str:
        return str(element["meta"]["path"])

    def element(self, row: Row) -> Row:
        support = [word["support"] for word in row["words"] if word["support"] is not None]
        result = {
            "id": f"{key_of(row['path']):016x}",  # results must not share one
            "from_name": "caption",
            "to_name": "image",
            "type": "textarea",
            "value": {"text": [row["caption"]]},
        }
        prediction: Row = {"model_version": row["model"], "result": [result]}
        if support:
            prediction["score"] = round(sum(support) / len(support), 6)
        meta = {"path": row["path"], "sha256": row["sha256"]}
        image = row["path"] if "://" in row["path"] else _local_file(row["path"])
        return {"data": {"image": image}, "meta": meta, "predictions": [prediction]}


class FiftyOneLabels(Format):
    """A folder that FiftyOne imports as a `FiftyOneImageDetectionDataset`.

    `labels.json` has the caption of each picture as the label of a box that is the whole picture:
    of FiftyOne's formats for pictures, the one with boxes is the one whose attributes it reads. The
    confidence is the mean support of the words that were checked, or else the mean probability of a
    word. Attributes are lists, an entry for each word: its text, where it is in the caption
    (`start`, `end`), its verdict and support. `data.json` has the absolute paths of the pictures.
    """

    grows: ClassVar[bool] = False
    is_folder: ClassVar[bool] = True

    @property
    def work(self) -> Path:
        return self.output / ".unfinished"

    def clear(self) -> None:
        for name in ("labels.json", "data.json"):
            (self.output / name).unlink(missing_ok=True)

    def has_own(self, item: Item) -> bool:
        return f"{item.key:016x}" in self._earlier["data.json"]

    @functools.cached_property
    def _earlier(self) -> dict[str, Any]:
        """The two files as they were before this job."""
        content: dict[str, Any] = {"labels.json": {"labels": {}}, "data.json": {}}
        for name in content:
            if (self.output / name).exists():
                content[name] = read_json(self.output / name, DATA_BYTES, DataError)
        labels = content["labels.json"]
        if not (isinstance(labels, dict) and isinstance(labels.get("labels"), dict)):
            raise DataError(
                f"{self.output / 'labels.json'}: not such a file; choose another output"
            )
        if not isinstance(content["data.json"], dict):
            raise DataError(f"{self.output / 'data.json'}: not such a file; choose another output")
        return content

    def assemble(self) -> None:
        labels, paths = self._earlier["labels.json"]["labels"], self._earlier["data.json"]
        for row in read_rows(self.rows):
            uuid = f"{key_of(row['path']):016x}"
            path = row["path"]
            labels[uuid] = [fiftyone_label(row)]
            paths[uuid] = path if "://" in path else str(Path(path).absolute())
        for name, content in (("labels.json", {"labels": labels}), ("data.json", paths)):
            with atomic_write(self.output / name) as file:
                json.dump(content, file, ensure_ascii=False)


def fiftyone_label(row: Row) -> Row:
    """A caption as FiftyOne's label.

    >>> word = {"text": "dog", "log_probability": 0.0, "verdict": None, "support": None}
    >>> label = fiftyone_label({"caption": "a dog", "words": [word | {"text": "a"}, word]})
    >>> label["confidence"], label["attributes"]["start"]
    (1.0, [0, 2])
    """
    words = row["words"]
    support = [word["support"] for word in words if word["support"] is not None]
    confidence = support or [
        math.exp(word["log_probability"]) for word in words if word["log_probability"] is not None
    ]
    starts = [sum(len(before["text"]) + 1 for before in words[:n]) for n in range(len(words))]
    attributes = {
        "word": [word["text"] for word in words],
        "start": starts,
        "end": [s + len(word["text"]) for s, word in zip(starts, words, strict=True)],
        "verdict": [word["verdict"] for word in words],
        "support": [word["support"] for word in words],
    }
    mean = round(sum(confidence) / max(1, len(confidence)), 6)
    return {
        "label": row["caption"],
        "bounding_box": [0.0, 0.0, 1.0, 1.0],
        "confidence": mean,
        "attributes": attributes,
    }


def _local_file(path: str) -> str:
    """How Label Studio calls a file under its document root."""
    from urllib.parse import quote

    return f"/data/local-files/?d={quote(path.lstrip('/'))}"
