"""Captions of pictures in which what some words name is known to have boxes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sightline.captioner import Captioner
from sightline.captions import Caption
from sightline.data.dataset import Box, CaptionedImage
from sightline.encoded_picture import EncodedPicture
from sightline.errors import DataError
from sightline.evaluation.grounding import grounded_words, inside
from sightline.evaluation.localisation import Mask
from sightline.experiments.captioned import caption_of, every_picture
from sightline.experiments.experiment import Record, Subject, Task


@dataclass(frozen=True, eq=False)
class GroundedCaption:
    """A captioner's own caption of a picture, and where the things are that it names."""

    picture: EncodedPicture
    caption: Caption
    masks: dict[int, Mask]  # by the word's place in the caption


def ground(captioner: Captioner, image: CaptionedImage) -> GroundedCaption:
    """Caption a picture, and find the words of the caption that name something with boxes."""
    picture, caption = caption_of(captioner, image)
    boxes = grounded_words([word.text for word in caption.words], image)
    height, width = picture.size
    masks = {place: inside(of_word, height, width) for place, of_word in boxes.items()}
    return GroundedCaption(picture, caption, {p: mask for p, mask in masks.items() if mask.any()})


def attention_inside(caption: Caption, place: int, boxes: tuple[Box, ...]) -> tuple[float, float]:
    """The share of a word's attention inside these boxes, and what they cover of the picture."""
    mask = inside(boxes, 112, 112)
    density = caption.attention_map(place, 112, 112)
    return float(density[mask].sum() / max(density.sum(), 1e-12)), float(mask.mean())


def picture_tasks(
    subjects: Sequence[Subject], measure: Callable[[Subject, CaptionedImage, int], Record]
) -> Iterator[Task]:
    """A task for every picture with boxes of every subject; `measure` gets its number, too."""
    grounded = []
    for subject in subjects:
        images = tuple(image for image in subject.images if image.groundings)
        if not images:
            raise DataError(
                f"none of the {len(subject.images)} pictures has boxes; give a file with --boxes"
            )
        grounded.append(replace(subject, images=images))
    return every_picture(grounded, measure)


def require_words(records: Sequence[Record]) -> None:
    """Refuse to conclude from captions that name nothing."""
    if not any(record["words"] for record in records):
        raise DataError(f"the captions of {len(records)} pictures name no object that has a box")
