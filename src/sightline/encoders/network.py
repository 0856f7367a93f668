"""What every network of an encoder is: parts in a row, and stages where some of them end."""

from torch import Tensor, nn

from sightline.encoders.convolutions import through


class Network(nn.Module):
    """A convolutional network whose features can be taken at several stages."""

    def parts(self, stage: str) -> list[nn.Module]:
        """What a picture goes through up to a stage, one after another."""
        raise NotImplementedError

    def classify(self, x: Tensor) -> Tensor:
        """Logits `(B, 1000)`."""
        raise NotImplementedError

    def stage(self, x: Tensor, name: str) -> Tensor:
        """Features `(B, dim, h, w)` at a stage; nothing beyond it is computed."""
        return through(x, self.parts(name))
