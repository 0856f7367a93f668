"""EfficientNet-Lite 0, 1 and 2: inverted bottlenecks with ReLU6, without squeeze-and-excitation.

Submodules carry the names of the state dicts that the weights come in (`_conv_stem`, `_blocks`),
so that these load strictly and unchanged. A batch norm is always registered right after its
convolution, which is what `fold_batch_norms` goes by.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sightline.encoders.activations import ReLU6
from sightline.encoders.network import Network

# Repeats, kernel, stride, expansion, width of EfficientNet-B0 (Tan and Le 2019, table 1).
_GROUPS = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
# Variant -> (width multiplier, depth multiplier). "Lite" scales neither stem, head nor the depth
# of the first and last group.
_SCALING = {0: (1.0, 1.0), 1: (1.0, 1.1), 2: (1.1, 1.2)}
# After which group the grid has its last features at stride 8, 16, 32.
_STAGE_ENDS = {"stage3": 2, "stage4": 4, "stage5": 6}


class SamePadding(nn.Module):
    """TensorFlow's SAME padding before a strided convolution: one side gets the odd pixel.

    Half a kernel on both sides would shift the grid by a pixel at every stride, and the network
    was not trained so.
    """

    def __init__(self, kernel: int, stride: int) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        (top, bottom), (left, right) = self._amounts(x.shape[2]), self._amounts(x.shape[3])
        return F.pad(x, (left, right, top, bottom))

    def _amounts(self, length: int) -> tuple[int, int]:
        total = max((-(-length // self.stride) - 1) * self.stride + self.kernel - length, 0)
        return total // 2, total - total // 2


class DepthwiseConv2d(nn.Conv2d):
    """A convolution of each channel by itself, learnt in 32 bits also where autocast is on.

    PyTorch's gradient of it in bfloat16 is slow on a CPU: like this, a step of the trained stages
    takes little more than half as long (`python benchmarks/encoder_gradient.py`).

    >>> layer = DepthwiseConv2d(2, 2, 1, groups=2)
    >>> with torch.autocast("cpu", torch.bfloat16):
    ...     print(layer(torch.ones(1, 2, 1, 1)).dtype)
    torch.float32
    """

    def forward(self, input: Tensor) -> Tensor:
        on_cpu = input.device.type == "cpu" and torch.is_autocast_enabled("cpu")
        if not (on_cpu and torch.is_grad_enabled()):
            return super().forward(input)
        with torch.autocast("cpu", enabled=False):
            return super().forward(input.float())


class InvertedBottleneck(nn.Module):
    """Expand 1x1, depthwise, project 1x1; added to its input where the shapes agree."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int, epsilon: float
    ) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expands = expansion != 1
        self.adds_input = stride == 1 and inputs == outputs
        if self.expands:
            self._expand_conv = nn.Conv2d(inputs, inner, 1, bias=False)
            self._bn0 = nn.BatchNorm2d(inner, eps=epsilon)
            self._relu0 = ReLU6()
        self._pad = SamePadding(kernel, stride) if stride > 1 else nn.Identity()
        self._depthwise_conv = DepthwiseConv2d(
            inner,
            inner,
            kernel,
            stride,
            padding=0 if stride > 1 else kernel // 2,
            groups=inner,
            bias=False,
        )
        self._bn1 = nn.BatchNorm2d(inner, eps=epsilon)
        self._relu1 = ReLU6()
        self._project_conv = nn.Conv2d(inner, outputs, 1, bias=False)
        self._bn2 = nn.BatchNorm2d(outputs, eps=epsilon)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self._relu0(self._bn0(self._expand_conv(x))) if self.expands else x
        y = self._relu1(self._bn1(self._depthwise_conv(self._pad(y))))
        y = self._bn2(self._project_conv(y))
        return x + y if self.adds_input else y


class EfficientNetLite(Network):
    """The network up to a chosen stage, and its 1000-way ImageNet classifier.

    >>> import torch
    >>> EfficientNetLite(0).stage(torch.zeros(1, 3, 224, 224), "head").shape
    torch.Size([1, 1280, 7, 7])
    """

    def __init__(self, variant: int, epsilon: float = 1e-3) -> None:
        super().__init__()
        width, depth = _SCALING[variant]
        self._pad = SamePadding(3, 2)
        self._conv_stem = nn.Conv2d(3, 32, 3, stride=2, bias=False)
        self._bn0 = nn.BatchNorm2d(32, eps=epsilon)
        self._relu0 = ReLU6()
        self._blocks = nn.ModuleList()
        self._ends: list[int] = []
        channels = 32
        for group, (repeats, kernel, stride, expansion, base) in enumerate(_GROUPS):
            outputs = _round_to_eight(base * width)
            if group not in (0, len(_GROUPS) - 1):
                repeats = math.ceil(repeats * depth)
            for repeat in range(repeats):
                step = stride if repeat == 0 else 1
                self._blocks.append(
                    InvertedBottleneck(channels, outputs, kernel, step, expansion, epsilon)
                )
                channels = outputs
            self._ends.append(len(self._blocks))
        self._conv_head = nn.Conv2d(channels, 1280, 1, bias=False)
        self._bn1 = nn.BatchNorm2d(1280, eps=epsilon)
        self._relu1 = ReLU6()
        self._fc = nn.Linear(1280, 1000)

    def parts(self, stage: str) -> list[nn.Module]:
        last = self._ends[_STAGE_ENDS.get(stage, -1)]
        parts = [self._pad, self._conv_stem, self._bn0, self._relu0, *self._blocks[:last]]
        return [*parts, self._conv_head, self._bn1, self._relu1] if stage == "head" else parts

    def classify(self, x: Tensor) -> Tensor:
        logits: Tensor = self._fc(self.stage(x, "head").mean((2, 3)))
        return logits


def _round_to_eight(width: float) -> int:
    rounded = max(8, int(width + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * width else rounded + 8
