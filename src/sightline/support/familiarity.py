"""Whether a picture is like those that a captioner knows, or a text, a chart, a drawing, noise."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sightline.errors import CheckpointError
from sightline.regions import Regions
from sightline.support.logistic import Floats, fit_logistic
from sightline.support.sealed import load_sealed, save_sealed

FILE = "familiarity.safetensors"
WARNED = 0.02  # the share of familiar pictures that may be called unfamiliar
_HELD_OUT = 5  # every fifth familiar picture sets the threshold instead of the weights
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

    The threshold is set on familiar pictures that the weights were not fitted to, so that the
    share `WARNED` of them is called unfamiliar.
    """
    held_out = np.arange(len(familiar)) % _HELD_OUT == 0
    rows = np.concatenate([familiar[~held_out], others])
    is_other = np.arange(len(rows)) >= len(rows) - len(others)
    fitted = fit_logistic(rows, is_other, _PENALTY)
    weights = fitted.weights / fitted.scale
    bias = -float(np.quantile(familiar[held_out] @ weights, 1 - WARNED))
    return Familiarity(torch.from_numpy(weights).float(), bias)


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
