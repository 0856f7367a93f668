"""Synthetic scenes with known answers: what is there, where it is, and how one may say it.

They are for tests with a ground truth, never for claims about photographs: a model that learns
anything learns a few hundred of them within a minute, every object word has an exact box, and with
`bias` an object that is nearly always there in training is often absent in the test, so that words
made up out of habit can be counted.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from sightline.data.dataset import CaptionDataset, CaptionedImage, Grounding
from sightline.data.jsonl import write_jsonl
from sightline.data.scene_drawing import (
    COLOURS,
    GREY,
    SHAPES,
    TEXTURES,
    Mark,
    draw_background,
    draw_mark,
    to_picture,
)
from sightline.errors import DataError

HABIT = ("circle", "star")
"""With `bias`, the second of these accompanies the first in that share of training scenes."""


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How much there is to see and to say."""

    companions: bool  # a second object, in relation to the first, in three scenes of four
    sizes: bool  # objects are small or large, and captions say so
    textures: bool  # captions name the background
    distractors: int  # up to so many grey shapes that nobody mentions


DIFFICULTIES = {
    "easy": Difficulty(companions=False, sizes=False, textures=False, distractors=0),
    "medium": Difficulty(companions=True, sizes=False, textures=False, distractors=0),
    "hard": Difficulty(companions=True, sizes=True, textures=True, distractors=3),
}

# {0} is the thing on the left or on top, {1} the other one.
_ALONE = ("{0}", "there is {0}", "a picture of {0}", "{0} can be seen", "one can see {0}")
_BESIDE = (
    "{0} is to the left of {1}",
    "{1} is to the right of {0}",
    "there is {0} to the left of {1}",
    "there is {1} to the right of {0}",
    "{0} on the left and {1} on the right",
)
_OVER = (
    "{0} is above {1}",
    "{1} is below {0}",
    "there is {0} above {1}",
    "there is {1} below {0}",
    "{0} at the top and {1} at the bottom",
)
_RADII = {"small": (0.09, 0.11), "": (0.12, 0.16), "large": (0.17, 0.2)}


@dataclass(frozen=True, slots=True)
class Thing:
    """An object that captions name."""

    mark: Mark
    words: tuple[str, ...]  # a large red circle


def make_scenes(
    count: int,
    *,
    seed: int,
    difficulty: str = "medium",
    size: int = 128,
    bias: float | None = None,
    split: str | None = None,
) -> list[CaptionedImage]:
    """Scenes as captioned pictures in memory, with the box of every object word.

    Scene `n` of a seed is the same whatever the count.

    >>> scene = make_scenes(1, seed=0, difficulty="easy")[0]
    >>> len(scene.captions), len(scene.groundings)
    (5, 5)
    """
    if difficulty not in DIFFICULTIES:
        known = ", ".join(DIFFICULTIES)
        raise DataError(f"scenes: no difficulty is called '{difficulty}'; choose one of {known}")
    if bias is not None and not DIFFICULTIES[difficulty].companions:
        raise DataError(f"scenes: '{difficulty}' scenes have one object, so bias has no meaning")
    return [
        _make_scene(np.random.default_rng((seed, number)), number, difficulty, size, bias, split)
        for number in range(count)
    ]


def make_scene_dataset(
    train: int = 400,
    dev: int = 100,
    test: int = 100,
    *,
    seed: int = 0,
    difficulty: str = "medium",
    size: int = 128,
    bias: float | None = None,
) -> CaptionDataset:
    """Three splits of scenes.

    With `bias` (say 0.9) a star stands beside a circle in that share of the *training* scenes with
    a circle; in dev and test in half of them, so that habit and sight give different answers.
    """
    images: list[CaptionedImage] = []
    for number, (split, count) in enumerate({"train": train, "dev": dev, "test": test}.items()):
        habit = None if bias is None else bias if split == "train" else 0.5
        images += make_scenes(
            count,
            seed=3 * seed + number,
            difficulty=difficulty,
            size=size,
            bias=habit,
            split=split,
        )
    return CaptionDataset(tuple(images), format="scenes")


def write_scenes(dataset: CaptionDataset, folder: Path) -> Path:
    """Save scenes as PNG files and `captions.jsonl`, boxes included; returns that file."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder}: not an empty folder; choose a new one for the scenes")
    saved = []
    (folder / "images").mkdir(parents=True)
    for image in dataset:
        assert isinstance(image.picture, Image.Image)
        path = folder / "images" / image.name
        image.picture.save(path)
        saved.append(
            CaptionedImage(
                image.name, path, image.captions, image.split, image.groundings, image.id
            )
        )
    write_jsonl(tuple(saved), folder / "captions.jsonl")
    return folder / "captions.jsonl"


def _make_scene(
    random: np.random.Generator,
    number: int,
    difficulty: str,
    size: int,
    bias: float | None,
    split: str | None,
) -> CaptionedImage:
    level = DIFFICULTIES[difficulty]
    shapes = _choose_shapes(random, level, bias)
    beside = bool(random.random() < 0.5)
    things = [
        _make_thing(random, shape, level, centre)
        for shape, centre in zip(shapes, _centres(random, len(shapes), beside), strict=True)
    ]
    texture = str(random.choice(list(TEXTURES)))
    canvas = draw_background(texture, size, random)
    for mark in _distractors(random, level, [thing.mark for thing in things]):
        draw_mark(canvas, mark)
    boxes = [draw_mark(canvas, thing.mark) for thing in things]
    templates = _ALONE if len(things) == 1 else _BESIDE if beside else _OVER
    ending = f" on a {texture} background" if level.textures else ""
    captions, groundings = [], []
    for index, template in enumerate(templates):
        words, spans = _fill(template + ending, [thing.words for thing in things])
        captions.append(" ".join(words))
        for thing, box, span in zip(things, boxes, spans, strict=True):
            groundings.append(Grounding(thing.mark.shape, (box,), index, span))
    name = f"{split or 'scene'}-{number:06d}.png"
    return CaptionedImage(name, to_picture(canvas), tuple(captions), split, tuple(groundings))


def _choose_shapes(random: np.random.Generator, level: Difficulty, bias: float | None) -> list[str]:
    first = str(random.choice(list(SHAPES)))
    if not level.companions:
        return [first]
    if bias is not None and first == HABIT[0]:
        shapes = list(HABIT) if random.random() < bias else [first]
    elif random.random() < 0.25:
        shapes = [first]
    else:
        # With a bias, the first of the habit has no other companions than the second.
        barred = {first} if bias is None else {first, HABIT[0]}
        shapes = [first, str(random.choice([shape for shape in SHAPES if shape not in barred]))]
    return [str(shape) for shape in random.permutation(shapes)]


def _centres(random: np.random.Generator, count: int, beside: bool) -> list[tuple[float, float]]:
    """Places for one thing, or for two that are clearly beside or above each other."""
    if count == 1:
        x, y = random.uniform(0.22, 0.78, 2)
        return [(float(x), float(y))]
    near, far = random.uniform(0.21, 0.3), random.uniform(0.7, 0.79)
    middle = random.uniform(0.3, 0.7)
    a, b = middle + random.uniform(-0.08, 0.08, 2)
    return [(near, a), (far, b)] if beside else [(a, near), (b, far)]


def _make_thing(
    random: np.random.Generator, shape: str, level: Difficulty, centre: tuple[float, float]
) -> Thing:
    colour = str(random.choice(list(COLOURS)))
    extent = str(random.choice(["small", "large"])) if level.sizes else ""
    shade = np.clip(np.array(COLOURS[colour]) + random.integers(-12, 13, 3), 0, 255)
    mark = Mark(
        shape,
        (int(shade[0]), int(shade[1]), int(shade[2])),
        float(centre[0]),
        float(centre[1]),
        float(random.uniform(*_RADII[extent])),
    )
    described = [word for word in (extent, colour, shape) if word]
    return Thing(mark, ("an" if described[0][0] in "aeiou" else "a", *described))


def _distractors(random: np.random.Generator, level: Difficulty, marks: list[Mark]) -> list[Mark]:
    """Small grey shapes wherever there is room."""
    distractors: list[Mark] = []
    for _ in range(int(random.integers(level.distractors + 1))):
        x, y = random.uniform(0.08, 0.92, 2)
        mark = Mark(str(random.choice(list(SHAPES))), GREY, float(x), float(y), 0.05)
        if all(
            np.hypot(mark.x - other.x, mark.y - other.y) > mark.radius + 1.45 * other.radius
            for other in (*marks, *distractors)
        ):
            distractors.append(mark)
    return distractors


def _fill(template: str, things: list[tuple[str, ...]]) -> tuple[list[str], list[tuple[int, int]]]:
    """A template's words with the things' words in place of {0} and {1}, and the spans of those."""
    words: list[str] = []
    spans = {}
    for word in template.split():
        if word.startswith("{"):
            index = int(word[1:-1])
            spans[index] = (len(words), len(words) + len(things[index]))
            words += things[index]
        else:
            words.append(word)
    return words, [spans[index] for index in range(len(things))]
