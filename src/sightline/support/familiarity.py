"""Whether a picture is like those that a captioner knows, or a text, a chart, a drawing, noise."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sightline.errors import CheckpointError
from sightline.regions import Regions
from sightline.support.logistic import Floats, fit_logistic, held_out_logits
from sightline.support.sealed import load_sealed, save_sealed

FILE = "familiarity.safetensors"
# The share of familiar pictures that may be called unfamiliar. With `UNSURE` of `support.fit` it
# makes 4 %: at most 5 % is wanted, and the share of some thousand other pictures varies.
WARNED = 0.02
_FOLDS = 5
_PENALTY = 100.0  # a weight for each of a thousand numbers, fitted to some thousand pictures


@dataclass(frozen=True, eq=False)
class Familiarity:
    """A linear classifier of a picture's mean region; above zero, a picture is unfamiliar.

    It is fitted to pictures of a dataset and to pictures of other kinds, drawn at random: outlier
    exposure (Hendrycks et al. 2019). What it learns holds for kinds that it was not fitted to.

    >>> familiarity = Familiarity(torch.tensor([1.0, -1.0]), -0.5)
    >>> vectors = torch.tensor([[[2.0, 0.0]], [[0.0, 2.0]]])
    >>> familiarity.unfamiliar(Regions(vectors, torch.ones(2, 1) > 0, torch.zeros(2, 1, 4)))
    [True, False]
    """

    weights: Tensor  # (D,)
    bias: float

    def unfamiliar(self, regions: Regions) -> list[bool]:
        """For each picture whether it is unlike those that the captioner knows."""
        scores = mean_region(regions) @ self.weights.to(regions.vectors.device) + self.bias
        return (scores > 0).tolist()


def mean_region(regions: Regions) -> Tensor:
    """The mean `(B, D)` of each picture's regions."""
    mask = regions.mask[..., None]
    return (regions.vectors * mask).sum(1) / mask.sum(1).clamp(min=1)


def fit_familiarity(familiar: Floats, others: Floats) -> Familiarity:
    """The classifier of mean regions `(n, D)` of familiar pictures and of others.

    The weights are fitted to all of them. The threshold is set so that the share `WARNED` of the
    familiar pictures is called unfamiliar, each by weights that were fitted without its fold.
    """
    rows = np.concatenate([familiar, others])
    is_other = np.arange(len(rows)) >= len(familiar)
    folds = np.concatenate([np.arange(len(familiar)), np.arange(len(others))]) % _FOLDS
    held_out = held_out_logits(rows, is_other, folds, _PENALTY)[~is_other]
    fitted = fit_logistic(rows, is_other, _PENALTY)
    weights = fitted.weights / fitted.scale
    bias = fitted.bias - fitted.mean @ weights - np.quantile(held_out, 1 - WARNED)
    return Familiarity(torch.from_numpy(weights).float(), float(bias))


def save_familiarity(folder: Path, familiarity: Familiarity) -> None:
    """Store it in a checkpoint folder."""
    tensors = {"weights": familiarity.weights, "bias": torch.tensor([familiarity.bias])}
    save_sealed(folder / FILE, tensors, {})


def load_familiarity(folder: Path) -> Familiarity | None:
    """What `save_familiarity` stored, or None if nothing was fitted."""
    path = folder / FILE
    if not path.is_file():
        return None
    tensors, _ = load_sealed(path)
    weights, bias = tensors.get("weights"), tensors.get("bias")
    if weights is None or bias is None or weights.ndim != 1 or bias.shape != (1,):
        raise CheckpointError(
            f"{path}: damaged, or of another version; run sightline fit-support again"
        )
    return Familiarity(weights.float(), float(bias))
