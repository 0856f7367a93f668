"""An exponential moving average of the weights over training steps."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class AveragedWeights:
    """Exponential means of the weights of modules (Polyak; Kingma and Ba 2015, section 7.2).

    Training goes on with the weights themselves. The means, which steps back and forth have left,
    take their place while they are `shown`: to be evaluated, or written to a checkpoint. With a
    decay of 0 there are no means, and all of this does nothing.

    >>> layer = nn.Linear(1, 1)
    >>> averages = AveragedWeights([layer], decay=0.5)
    >>> mean = float(layer.weight.detach())
    >>> _ = nn.init.constant_(layer.weight, mean + 1.0)
    >>> averages.update(steps=100)
    >>> with averages.shown():
    ...     shown = float(layer.weight.detach())
    >>> round(shown - mean, 3), round(float(layer.weight.detach()) - mean, 3)
    (0.5, 1.0)
    """

    def __init__(self, modules: Iterable[nn.Module], decay: float) -> None:
        self.decay = decay
        parameters = (parameter for module in modules for parameter in module.parameters())
        self.weights = [parameter.detach() for parameter in parameters] if decay else []
        self.means = [weight.clone() for weight in self.weights]

    def update(self, steps: int) -> None:
        """Take in the weights after so many steps of the run.

        The first weights of a run are chance, and soon left out of the means. Those that a later
        phase begins with are not: its means are drawn out between them and where it goes.
        """
        decay = min(self.decay, steps / (steps + 10))
        for mean, weight in zip(self.means, self.weights, strict=True):
            mean.lerp_(weight, 1 - decay)

    def restart(self) -> None:
        """The weights were replaced: the means begin there."""
        for mean, weight in zip(self.means, self.weights, strict=True):
            mean.copy_(weight)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """The modules have their means for weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for mean, weight in zip(self.means, self.weights, strict=True):
            kept = weight.clone()
            weight.copy_(mean)
            mean.copy_(kept)

    def pack(self) -> dict[str, Tensor]:
        """The weights that training goes on with, by name; the means are in the checkpoint."""
        return {
            f"weight.{index}": weight.clone(memory_format=torch.contiguous_format)
            for index, weight in enumerate(self.weights)
        }

    def unpack(self, packed: dict[str, Tensor]) -> None:
        """Put back what `pack` took, in modules that have just been given the means."""
        self.restart()
        for index, weight in enumerate(self.weights):
            weight.copy_(packed[f"weight.{index}"])
