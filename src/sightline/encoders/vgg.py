"""VGG-11, 16 and 19 (Simonyan and Zisserman 2015), in the key layout of torchvision.

Paper 1's encoder: `stage4` is the last convolution before the last pooling (conv5_3 of VGG-16,
14 x 14 x 512 at 224 px), `stage5` the last pooling (7 x 7 x 512).
"""

from torch import Tensor, nn

from sightline.encoders.activations import ReLU
from sightline.encoders.network import Network
from sightline.errors import WeightsError

# 3x3 convolutions in each of the five groups of 64, 128, 256, 512 and 512 channels.
_CONVOLUTIONS = {11: (1, 1, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(Network):
    """The convolutions, and with `head` the 1000-way ImageNet classifier.

    >>> import torch
    >>> VGG(11, head=False).stage(torch.zeros(1, 3, 224, 224), "stage4").shape
    torch.Size([1, 512, 14, 14])
    """

    def __init__(self, variant: int, head: bool = True) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        self._ends: dict[str, int] = {}
        inputs = 3
        for group, count in enumerate(_CONVOLUTIONS[variant]):
            outputs = min(64 * 2**group, 512)
            for _ in range(count):
                layers += [nn.Conv2d(inputs, outputs, 3, padding=1), ReLU()]
                inputs = outputs
            self._ends[f"stage{group}"] = len(layers)
            layers.append(nn.MaxPool2d(2))
        self._ends["stage5"] = len(layers)
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier: nn.Sequential | None = None
        if head:
            self.classifier = nn.Sequential(
                nn.Linear(512 * 7 * 7, 4096),
                ReLU(),
                nn.Dropout(),
                nn.Linear(4096, 4096),
                ReLU(),
                nn.Dropout(),
                nn.Linear(4096, 1000),
            )

    def parts(self, stage: str) -> list[nn.Module]:
        return list(self.features)[: self._ends[stage]]

    def classify(self, x: Tensor) -> Tensor:
        if self.classifier is None:
            raise WeightsError("these VGG weights have no classifier: use the features alone")
        logits: Tensor = self.classifier(self.avgpool(self.stage(x, "stage5")).flatten(1))
        return logits
