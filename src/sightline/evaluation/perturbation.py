"""Deletion and insertion: what a word's probability loses as parts of the picture are hidden.

Parts that a map calls most relevant are hidden first, or those that it calls least relevant. A true
map makes a word fall early in the one case and late in the other. Hiding the least relevant first
is insertion read backwards: what is left of it are the most relevant parts, inserted into a picture
that is hidden otherwise. (Samek et al. 2017; Petsiuk et al. 2018; the difference of both, Blücher
et al. 2024.)
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from sightline.captioner import Captioner
from sightline.encoded_picture import EncodedPicture
from sightline.regions import Regions
from sightline.text.vocabulary import START

FRACTIONS = (0.1, 0.2, 0.4, 0.7)
"""Of the parts that are hidden."""

ORDERS = ("most", "least")  # relevant first
REPLACEMENTS = ("blur", "mean")  # of what is hidden

Curve = list[float]
"""The probability that is lost at each of the fractions."""

_TOGETHER = {"pixels": 8, "regions": 64}  # perturbed pictures in one pass
_BLUR = 0.05  # of the picture's side: the deviation of the Gaussian


class Perturbation:
    """A picture and the beginning of a caption, of which parts are hidden to see a word fall."""

    def __init__(self, captioner: Captioner, picture: EncodedPicture, ids: Sequence[int]) -> None:
        self.captioner, self.picture = captioner, picture
        self.tokens = torch.tensor([[[START, *ids[:-1]]]], device=captioner.device)
        self.ids = list(ids)
        self._spans = captioner.vocabulary.spans(self.ids)
        self._x = captioner.encoder.normalise(picture.pixels.to(captioner.device))
        vectors = picture.regions.vectors
        blurred = blur(self._x, _BLUR * self._x.shape[-1])
        with torch.no_grad():
            blurred_vectors = captioner.encoder.vectors(blurred)
        self._replacements = {
            "pixels": {"blur": blurred, "mean": self._x.mean((2, 3), keepdim=True)},
            "regions": {"blur": blurred_vectors, "mean": vectors.mean(1, keepdim=True)},
        }
        self._whole = self._probabilities(vectors)[0]

    def regions(self, place: int, relevance: Sequence[NDArray[np.floating]]) -> list[list[Curve]]:
        """Curves of a word for each map of the regions `(L,)`: see `_curves`."""

        def hide(hidden: Tensor, replacement: Tensor) -> Tensor:
            return torch.where(hidden[..., None], replacement, self.picture.regions.vectors)

        return self._curves("regions", place, relevance, hide)

    def pixels(self, place: int, heatmaps: Sequence[NDArray[np.floating]]) -> list[list[Curve]]:
        """Curves of a word for each heatmap of the picture `(H, W)`: see `_curves`."""
        height, width = self._x.shape[2:]

        def hide(hidden: Tensor, replacement: Tensor) -> Tensor:
            masks = torch.unflatten(hidden, 1, (1, height, width))
            x = torch.where(masks, replacement, self._x)
            return self.captioner.encoder.vectors(x)

        shown = [self._at_input(heatmap).ravel() for heatmap in heatmaps]
        return self._curves("pixels", place, shown, hide)

    @torch.no_grad()
    def _curves(
        self,
        parts: str,
        place: int,
        relevance: Sequence[NDArray[np.floating]],
        hide: Callable[[Tensor, Tensor], Tensor],
    ) -> list[list[Curve]]:
        """For each map, the curves of every order and replacement, orders outermost."""
        hidden = torch.from_numpy(np.stack([hidden_parts(values) for values in relevance]))
        together = _TOGETHER[parts]
        by_replacement = []
        for name in REPLACEMENTS:
            masks = hidden.flatten(0, 2).to(self.captioner.device)  # (maps x orders x fractions, n)
            probabilities = [
                self._of_word(
                    self._probabilities(hide(some, self._replacements[parts][name])), place
                )
                for some in torch.split(masks, together)
            ]
            falls = self._of_word(self._whole[None], place) - torch.cat(probabilities)
            by_replacement.append(falls.view(hidden.shape[:3]))
        curves: list[list[Curve]] = torch.stack(by_replacement, 2).flatten(1, 2).tolist()
        return curves

    def _of_word(self, probabilities: Tensor, place: int) -> Tensor:
        """That of a word `(M,)`, of all words `(M, T, V)`: the product of its pieces'."""
        _, start, stop = self._spans[place]
        places = torch.arange(start, stop, device=probabilities.device)
        pieces = torch.tensor(self.ids[start:stop], device=probabilities.device)
        return probabilities[:, places, pieces].prod(-1)

    @torch.no_grad()
    def _probabilities(self, vectors: Tensor) -> Tensor:
        """Of all words `(M, T, V)`, of regions `(M, L, D)`."""
        count = len(vectors)
        mask, boxes = self.picture.regions.mask, self.picture.regions.boxes
        regions = Regions(vectors, mask.expand(count, -1), boxes.expand(count, -1, -1))
        logits: Tensor = self.captioner.model(regions, self.tokens.expand(count, -1, -1)).logits
        return logits[:, 0].softmax(-1)

    def _at_input(self, heatmap: NDArray[np.floating]) -> NDArray[np.floating]:
        """A map of the picture with the pixels of the encoder's input; lowest outside of it."""
        x0, y0, x1, y1 = self.picture.window[0].tolist()
        rows, inside_rows = _nearest(y0, y1, self._x.shape[2], heatmap.shape[0])
        columns, inside_columns = _nearest(x0, x1, self._x.shape[3], heatmap.shape[1])
        shown = inside_rows[:, None] & inside_columns
        return np.where(shown, heatmap[rows][:, columns], heatmap.min())


def hidden_parts(relevance: NDArray[np.floating]) -> NDArray[np.bool_]:
    """What is hidden of n parts in each order, for each fraction `(orders, fractions, n)`.

    Equally relevant parts are in an order drawn at random, the same for every map.

    >>> hidden_parts(np.array([3.0, 1.0, 2.0, 0.0]))[:, 3].tolist()  # 70 % of four: three
    [[True, True, True, False], [False, True, True, True]]
    """
    draw = np.random.default_rng(0).random(len(relevance))
    ranks = np.empty(len(relevance), int)
    ranks[np.lexsort((draw, relevance))] = np.arange(len(relevance))  # 0 is the least relevant
    counts = np.round(np.array(FRACTIONS) * len(relevance)).astype(int)[:, None]
    return np.stack([ranks >= len(relevance) - counts, ranks < counts])


def blur(x: Tensor, deviation: float) -> Tensor:
    """Pictures `(B, C, H, W)` under a Gaussian; the border is repeated outwards.

    >>> blur(torch.full((1, 1, 8, 8), 3.0), 2.0).allclose(torch.tensor(3.0))
    True
    """
    reach = max(round(3 * deviation), 1)
    kernel = torch.exp(-0.5 * (torch.arange(-reach, reach + 1.0) / deviation) ** 2).to(x)
    kernel = (kernel / kernel.sum()).repeat(x.shape[1], 1, 1, 1)
    padded = functional.pad(x, (reach, reach, reach, reach), mode="replicate")
    across = functional.conv2d(padded, kernel, groups=x.shape[1])
    return functional.conv2d(across, kernel.transpose(2, 3), groups=x.shape[1])


def _nearest(
    low: float, high: float, length: int, size: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Which of `size` pixels each of `length` falls on, and whether it falls on any."""
    places = np.floor((low + (np.arange(length) + 0.5) / length * (high - low)) * size)
    return np.clip(places, 0, size - 1).astype(int), (places >= 0) & (places < size)
