"""EfficientNet-Lite 0, 1 and 2: inverted bottlenecks with ReLU6, without squeeze-and-excitation.

Submodules carry the names of the state dicts that the weights come in (`_conv_stem`, `_blocks`),
so that these load strictly and unchanged. A batch norm is always registered right after its
convolution, which is what `fold_batch_norms` goes by.
"""

import math

from torch import Tensor, nn

from sightline.encoders.activations import ReLU6
from sightline.encoders.convolutions import DepthwiseConv2d, SamePadding, through
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
        expand = [self._expand_conv, self._bn0, self._relu0] if self.expands else []
        depthwise = [self._pad, self._depthwise_conv, self._bn1, self._relu1]
        project = [self._project_conv, self._bn2]
        return through(x, [*expand, *depthwise, *project], x if self.adds_input else None)


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
