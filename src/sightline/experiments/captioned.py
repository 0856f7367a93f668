"""Captions of a captioner's own: which of their words are right, and what they score."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.captioner import Captioner
from sightline.captions import Caption
from sightline.data.dataset import CaptionedImage
from sightline.encoded_picture import EncodedPicture
from sightline.errors import DataError
from sightline.experiments.claims import Answer, untested
from sightline.experiments.estimate import Estimate, estimate, estimate_difference
from sightline.experiments.experiment import Record, Subject, Task
from sightline.metrics.word_labels import label_words
from sightline.text.stop_words import STOP_WORDS


@dataclass(frozen=True, eq=False)
class LabelledCaption:
    """A captioner's own caption, and which of its content words the references say."""

    picture: EncodedPicture
    caption: Caption
    right: dict[int, bool]  # by the word's place in the caption


def caption_of(captioner: Captioner, image: CaptionedImage) -> tuple[EncodedPicture, Caption]:
    """A picture opened and encoded once, and the captioner's own caption of it."""
    picture = captioner.encode(captioner.open(image.picture))
    return picture, captioner.caption(picture)


def label_caption(captioner: Captioner, image: CaptionedImage) -> LabelledCaption:
    """Caption a picture, and hold the words against its references."""
    picture, caption = caption_of(captioner, image)
    words = [word.text for word in caption.words]
    labels = label_words(words, image.captions)
    right = {
        place: label
        for place, (word, label) in enumerate(zip(words, labels, strict=True))
        if word not in STOP_WORDS
    }
    return LabelledCaption(picture, caption, right)


def every_picture(
    subjects: Sequence[Subject], measure: Callable[[Subject, CaptionedImage, int], Record]
) -> Iterator[Task]:
    """A task for every picture of every subject; `measure` gets its number, too.

    A record has the mean mask of its run's training, unless `measure` says that of the picture.
    """
    for subject in subjects:
        mask = {} if subject.mask is None else {"mask": subject.mask}
        for number, image in enumerate(subject.images):
            yield Task(
                f"{subject.name}/{image.name}",
                lambda subject=subject, image=image, number=number, mask=mask: {  # type: ignore[misc]
                    "run": subject.name,
                    "model": subject.model,
                    "picture": image.name,
                    **mask,
                    **measure(subject, image, number),
                },
            )


def say(subject: Subject, image: CaptionedImage, number: int) -> Record:
    """A caption beside its references, for scores over all pictures."""
    return {
        "caption": subject.captioner.caption(image.picture).text,
        "references": list(image.captions),
    }


def by_run(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each run, in their order."""
    runs: dict[str, list[Record]] = {}
    for record in records:
        runs.setdefault(record["run"], []).append(record)
    return runs


def words_of(records: Sequence[Record]) -> list[Record]:
    """All words of the records, each with its picture."""
    words = [{"picture": r["picture"], **word} for r in records for word in r["words"]]
    if not words:
        raise DataError(f"the captions of {len(records)} pictures have no word to measure")
    return words


def by_right(words: Sequence[Record], value: Callable[[Record], float]) -> dict[str, Estimate]:
    """The mean of a value over right and over wrong words, with its interval over pictures."""
    kinds = {
        kind: [word for word in words if word["right"] == right]
        for kind, right in (("right", True), ("wrong", False))
    }
    return {
        kind: estimate([value(word) for word in some], [word["picture"] for word in some])
        for kind, some in kinds.items()
    }


def gap_between(
    words: Sequence[Record], value: Callable[[Record], float], kind: Callable[[Record], bool]
) -> Estimate:
    """How much higher the mean of a value is over words of a kind than over the others."""
    groups: list[list[Any]] = []
    for of_kind in (True, False):
        chosen = [word for word in words if kind(word) == of_kind]
        groups += [value(word) for word in chosen], [word["picture"] for word in chosen]
    return estimate_difference(*groups)


def wrong_cells(run: str, records: Sequence[Record]) -> list[Record]:
    """The wrong words of a run, each with its picture, to be drawn."""
    images = {record["picture"]: record["image"] for record in records}
    return [
        {**word, "run": run, "image": images[word["picture"]]}
        for word in words_of(records)
        if not word["right"]
    ]


ENOUGH = 100
"""Pictures of a run below which a claim about captions is not decided."""


def on_enough(test: Callable[[dict[str, Any]], Answer]) -> Callable[[dict[str, Any]], Answer]:
    """A claim's test that does not decide on a handful of pictures, but says what they show."""

    def answer(data: dict[str, Any]) -> Answer:
        found = test(data)
        fewest = min(data.get("pictures", {}).values(), default=ENOUGH)
        if fewest >= ENOUGH or found.verdict == "not tested":
            return found
        return untested(f"{fewest} pictures are too few to decide. {found.sentence}")

    return answer
