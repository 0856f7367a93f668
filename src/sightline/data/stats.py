"""Statistics of a dataset: its size, caption lengths and vocabulary coverage."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.data.dataset import SPLITS, CaptionDataset, CaptionedImage, captions_of
from sightline.errors import DataError
from sightline.files import atomic_write
from sightline.text.tokenizer import tokenize

THRESHOLDS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20)


@dataclass(frozen=True, slots=True)
class SplitSize:
    """One split: pictures, captions, tokens, and pictures that have boxes."""

    images: int
    captions: int
    tokens: int
    with_boxes: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What `sightline data stats` prints.

    Lengths and coverage are those of the training split, which is what a vocabulary and a maximum
    length are chosen on (of the whole dataset, if it has no training split).
    """

    splits: dict[str, SplitSize]
    lengths: dict[int, int]  # tokens of a caption -> captions
    coverage: list[tuple[int, int, float]]  # minimum count -> words, share of tokens

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "splits": {
                name: {
                    "images": size.images,
                    "captions": size.captions,
                    "tokens": size.tokens,
                    "with_boxes": size.with_boxes,
                }
                for name, size in self.splits.items()
            },
            "lengths": {str(length): count for length, count in self.lengths.items()},
            "coverage": [
                {"min_count": minimum, "words": words, "token_share": share}
                for minimum, words, share in self.coverage
            ],
        }

    def plot(self, path: Path) -> None:
        """The length histogram and the coverage curve as one figure (PNG, PDF or SVG)."""
        from matplotlib.figure import Figure

        if path.suffix not in (".png", ".pdf", ".svg"):
            raise DataError(f"{path}: a figure must end in .png, .pdf or .svg")
        figure = Figure(figsize=(10, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.bar(list(self.lengths), list(self.lengths.values()), color="#3b6ea5")
        left.set(xlabel="tokens in a caption", ylabel="captions", title="Caption length")
        minimum, _, share = zip(*self.coverage, strict=True)
        right.plot(minimum, [100 * s for s in share], "o-", color="#3b6ea5")
        right.set(
            xlabel="minimum count of a word",
            ylabel="tokens covered (%)",
            title="Vocabulary (labels: words kept)",
        )
        right.set_xticks(minimum, [str(m) for m in minimum])
        for m, w, s in self.coverage:
            right.annotate(f"{w:,}", (m, 100 * s), (0, 7), textcoords="offset points", ha="left")
        right.margins(x=0.08, y=0.18)
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
        with atomic_write(path, "wb") as file:
            figure.savefig(file, format=path.suffix[1:], dpi=150)


def measure(dataset: CaptionDataset) -> Stats:
    """The sizes, lengths and coverage of a dataset.

    >>> from sightline.data.scenes import make_scene_dataset
    >>> measure(make_scene_dataset(2, 1, 1)).splits["train"].captions
    10
    """
    splits = {}
    for name in (*SPLITS, None):
        images = [image for image in dataset if image.split == name]
        if images:
            lengths = [len(tokenize(caption)) for caption in captions_of(images)]
            boxed = sum(bool(image.groundings) for image in images)
            splits[name or "no split"] = SplitSize(len(images), len(lengths), sum(lengths), boxed)
    train = [image for image in dataset if image.split == "train"] or list(dataset.images)
    counts = Counter(len(tokenize(caption)) for caption in captions_of(train))
    return Stats(splits, dict(sorted(counts.items())), coverage(train, THRESHOLDS))


def coverage(
    images: Sequence[CaptionedImage], thresholds: Sequence[int]
) -> list[tuple[int, int, float]]:
    """For each minimum count: how many words remain, and the share of all tokens they cover."""
    counts = Counter(token for caption in captions_of(images) for token in tokenize(caption))
    total = max(counts.total(), 1)
    rows = []
    for threshold in thresholds:
        kept = [count for count in counts.values() if count >= threshold]
        rows.append((threshold, len(kept), sum(kept) / total))
    return rows
