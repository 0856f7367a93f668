"""`CaptionDataset`: captioned pictures with splits, whatever file they came from."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from PIL.Image import Image

from sightline.errors import DataError
from sightline.text.vocabulary import Vocabulary

SPLITS = ("train", "dev", "test")

Box = tuple[float, float, float, float]
"""`(x0, y0, x1, y1)` as fractions of the picture's width and height: holds at every size."""


@dataclass(frozen=True, slots=True)
class Grounding:
    """A thing in the picture: its boxes, and where known the words of a caption that name it."""

    label: str
    boxes: tuple[Box, ...]
    caption: int | None = None  # which of the picture's captions names it
    span: tuple[int, int] | None = None  # tokens [start, end) of that caption; the noun is last

    def __post_init__(self) -> None:
        if (self.caption is None) != (self.span is None):
            raise ValueError("a grounding has both a caption and a span, or neither")


@dataclass(frozen=True, slots=True)
class CaptionedImage:
    """One picture, its captions, and the split it belongs to (`None`: no split)."""

    name: str  # unique in its dataset
    picture: Path | Image  # a file, or a picture held in memory
    captions: tuple[str, ...]
    split: str | None = None
    groundings: tuple[Grounding, ...] = ()
    id: int | str = ""  # how results files call it; COCO numbers its pictures, else the name

    def __post_init__(self) -> None:
        if self.id == "":
            object.__setattr__(self, "id", self.name)


@dataclass(frozen=True, slots=True)
class CaptionDataset:
    """Captioned pictures in the order of their file, exactly as the file has them.

    A file may name a picture twice, or caption one it does not list; reading keeps such entries
    (`orphans` holds captions whose picture the file does not list) so that the validator can report
    them. `split` gives what training and evaluation use.

    >>> kitten = CaptionedImage("kitten.jpg", Path("kitten.jpg"), ("a kitten sleeps",), "train")
    >>> dataset = CaptionDataset((kitten,))
    >>> [image.name for image in dataset.split("train")]
    ['kitten.jpg']
    """

    images: tuple[CaptionedImage, ...]
    orphans: tuple[tuple[str, str], ...] = ()  # (picture id, caption)
    format: str = "jsonl"

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[CaptionedImage]:
        return iter(self.images)

    def split(self, name: str) -> tuple[CaptionedImage, ...]:
        """The pictures of one split; an error that names the splits there are, if it is empty."""
        chosen = tuple(image for image in self.images if image.split == name)
        if not chosen:
            splits = sorted({image.split for image in self.images if image.split})
            raise DataError(
                f"no picture is in split '{name}': the dataset has "
                + (", ".join(f"'{split}'" for split in splits) if splits else "no splits at all")
            )
        return chosen

    def with_groundings(self, groundings: dict[str, tuple[Grounding, ...]]) -> "CaptionDataset":
        """The same dataset with boxes, given by picture name."""
        images = tuple(
            replace(image, groundings=groundings.get(image.name, image.groundings))
            for image in self.images
        )
        return replace(self, images=images)

    def with_captions(self, most: int) -> "CaptionDataset":
        """The same dataset with only the first so many captions of each picture.

        Some pictures of COCO have six or seven; paper 1 keeps five, as other datasets have.
        """
        images = tuple(replace(image, captions=image.captions[:most]) for image in self.images)
        return replace(self, images=images)

    def with_training_pictures(self, count: int) -> "CaptionDataset":
        """The same dataset with only `count` pictures to train on, drawn once and for all.

        So captioners can be compared under a small budget; the other splits stay whole.
        """
        train = [number for number, image in enumerate(self.images) if image.split == "train"]
        if count > len(train):
            raise DataError(
                f"train_pictures: there are {len(train)} training pictures, not {count}"
            )
        left_out = set(train) - set(Random(0).sample(train, count))
        images = [image for number, image in enumerate(self.images) if number not in left_out]
        return replace(self, images=tuple(images))

    def hold_out_dev(self, count: int) -> "CaptionDataset":
        """Dev pictures become the test split, and `count` training pictures the dev split.

        So paper 4 splits COCO 2017, whose test captions are not public: 110,000 / 5,000 / 5,000.
        The pictures are drawn at random, always the same.
        """
        train = [number for number, image in enumerate(self.images) if image.split == "train"]
        splits = {image.split for image in self.images}
        if "test" in splits or "dev" not in splits:
            raise DataError(
                "dev_from_train: is for datasets with a train and a dev split but no test split"
            )
        if count >= len(train):
            raise DataError(
                f"dev_from_train: {count} of {len(train)} training pictures leave none to train on"
            )
        drawn = set(Random(0).sample(train, count))
        images = tuple(
            replace(image, split="dev" if number in drawn else _HELD_OUT.get(image.split))
            for number, image in enumerate(self.images)
        )
        return replace(self, images=images)


_HELD_OUT: dict[str | None, str] = {"train": "train", "dev": "test"}


def captions_of(images: Iterable[CaptionedImage]) -> Iterator[str]:
    """Every caption of the pictures, in order."""
    for image in images:
        yield from image.captions


def build_vocabulary(
    images: Sequence[CaptionedImage], *, min_count: int = 1, size: int | None = None
) -> Vocabulary:
    """The words of the training pictures' captions, as `Vocabulary.build` chooses them.

    Only pictures of the training split may be given (or of none, for data without splits): words
    learnt from the pictures one is tested on would make the test too easy.
    """
    for image in images:
        if image.split not in ("train", None):
            raise DataError(
                f"vocabulary: '{image.name}' is in split '{image.split}'; build the vocabulary "
                "from the training split only"
            )
    return Vocabulary.build(captions_of(images), min_count=min_count, size=size)
