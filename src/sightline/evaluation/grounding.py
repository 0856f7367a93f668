"""Which words of a caption name something whose place in the picture is known."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sightline.data.dataset import Box, CaptionedImage
from sightline.metrics.coco_objects import CATEGORIES, mentions

Boxes = tuple[Box, ...]


def grounded_words(words: Sequence[str], image: CaptionedImage) -> dict[int, Boxes]:
    """The places of words that name a thing with boxes, and all boxes of what they name.

    A phrase with boxes gives its last word, the noun: where any caption of the picture calls
    something so, a caption that says the same word means it. Boxes that belong to no phrase but to
    a category of COCO answer to every name of that category.

    >>> from pathlib import Path
    >>> from sightline.data.dataset import Grounding
    >>> things = (Grounding("a wet dog", ((0.0, 0.0, 0.5, 1.0),)),)
    >>> image = CaptionedImage("p.jpg", Path("p.jpg"), ("a wet dog",), groundings=things)
    >>> grounded_words(["the", "dog", "runs"], image)
    {1: ((0.0, 0.0, 0.5, 1.0),)}
    """
    nouns: dict[str, set[Box]] = defaultdict(set)
    categories: dict[str, set[Box]] = defaultdict(set)
    for thing in image.groundings:
        if thing.caption is None and thing.label in CATEGORIES:
            categories[thing.label].update(thing.boxes)
        else:
            nouns[thing.label.split()[-1]].update(thing.boxes)
    grounded = {place: nouns[word] for place, word in enumerate(words) if word in nouns}
    for place, named in _named_categories(words) if categories else ():
        boxes = set[Box]().union(*(categories[name] for name in named if name in categories))
        if boxes:
            grounded[place] = grounded.get(place, set()) | boxes
    return {place: tuple(sorted(grounded[place])) for place in sorted(grounded)}


def _named_categories(words: Sequence[str]) -> list[tuple[int, frozenset[str]]]:
    """The places where COCO's categories are named; of a name of several words, the last one's."""
    categories, start = [], 0
    for mention in mentions(" ".join(words)):
        name = mention.words.split()
        for end in range(start + len(name), len(words) + 1):
            if list(words[end - len(name) : end]) == name:
                categories.append((end - 1, mention.categories))
                start = end
                break
    return categories


def inside(boxes: Boxes, height: int, width: int) -> NDArray[np.bool_]:
    """The pixels `(height, width)` whose middle lies in any of the boxes.

    >>> inside(((0.0, 0.0, 0.5, 1.0),), 1, 4).tolist()
    [[True, True, False, False]]
    """
    mask = np.zeros((height, width), bool)
    x, y = (np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height
    for x0, y0, x1, y1 in boxes:
        rows, columns = slice(*np.searchsorted(y, (y0, y1))), slice(*np.searchsorted(x, (x0, x1)))
        mask[rows, columns] = True
    return mask
