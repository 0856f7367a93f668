"""ResNet-50 and 101 (He et al. 2016), in the key layout of torchvision.

`stage2` to `stage5` are the paper's conv2_x to conv5_x, torchvision's `layer1` to `layer4`.
A batch norm is always registered right after its convolution, which is what `fold_batch_norms`
goes by.
"""

from torch import Tensor, nn

from sightline.encoders.activations import ReLU
from sightline.encoders.convolutions import through
from sightline.encoders.network import Network

_BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with a shortcut; `stride_in_first` says which of the first two shrinks."""

    def __init__(
        self, inputs: int, inner: int, stride: int, stride_in_first: bool, epsilon: float
    ) -> None:
        super().__init__()
        first, second = (stride, 1) if stride_in_first else (1, stride)
        outputs = 4 * inner
        self.conv1 = nn.Conv2d(inputs, inner, 1, first, bias=False)
        self.bn1 = nn.BatchNorm2d(inner, eps=epsilon)
        self.relu1 = ReLU()
        self.conv2 = nn.Conv2d(inner, inner, 3, second, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner, eps=epsilon)
        self.relu2 = ReLU()
        self.conv3 = nn.Conv2d(inner, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs, eps=epsilon)
        self.relu3 = ReLU()
        self.downsample: nn.Sequential | None = None
        if inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                nn.BatchNorm2d(outputs, eps=epsilon),
            )

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else through(x, list(self.downsample))
        inner = [self.conv1, self.bn1, self.relu1, self.conv2, self.bn2, self.relu2]
        total: Tensor = self.relu3(through(x, [*inner, self.conv3, self.bn3], shortcut))
        return total


class ResNet(Network):
    """The convolutions and the 1000-way ImageNet classifier.

    >>> import torch
    >>> ResNet(50).stage(torch.zeros(1, 3, 224, 224), "stage4").shape
    torch.Size([1, 1024, 14, 14])
    """

    def __init__(self, variant: int, stride_in_first: bool = False, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64, eps=epsilon)
        self.relu = ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        inputs = 64
        for group, count in enumerate(_BLOCKS[variant]):
            blocks = nn.Sequential()
            for block in range(count):
                stride = 2 if group > 0 and block == 0 else 1
                blocks.append(Bottleneck(inputs, 64 * 2**group, stride, stride_in_first, epsilon))
                inputs = 256 * 2**group
            setattr(self, f"layer{group + 1}", blocks)
        self.fc = nn.Linear(inputs, 1000)

    def parts(self, stage: str) -> list[nn.Module]:
        layers = range(1, int(stage.removeprefix("stage")))
        stem = [self.conv1, self.bn1, self.relu, self.maxpool]
        return [*stem, *(getattr(self, f"layer{layer}") for layer in layers)]

    def classify(self, x: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.stage(x, "stage5").mean((2, 3)))
        return logits
