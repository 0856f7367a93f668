"""How long the trained stages of an encoder take in each precision.

    OMP_NUM_THREADS=1 python benchmarks/encoder_gradient.py

One forward and backward pass of EfficientNet-Lite2 from stage 5 on, in 32 bits, in bf16-mixed
precision as it is (depthwise convolutions in 32 bits), and in bf16-mixed precision throughout.
"""

import time
from collections.abc import Callable

import torch
from torch import nn

from sightline.encoders.efficientnet_lite import DepthwiseConv2d
from sightline.encoders.encoder import create_encoder
from sightline.encoders.trainable_stages import TrainableStages
from sightline.regions import Regions, grid_boxes

PICTURES, ROUNDS = 20, 5


def main() -> None:
    encoder = create_encoder("efficientnet_lite2")
    stages = TrainableStages(encoder, "stage5")
    windows = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(PICTURES, -1)
    regions = Regions(
        torch.randn(PICTURES, 17 * 17, 120),
        torch.ones(PICTURES, 17 * 17, dtype=torch.bool),
        grid_boxes(17, 17, windows),
    )

    def step(mixed: bool) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            vectors = stages(regions).vectors
        vectors.float().sum().backward()

    def throughout() -> None:
        forward = DepthwiseConv2d.forward
        DepthwiseConv2d.forward = nn.Conv2d.forward  # type: ignore[method-assign]
        step(True)
        DepthwiseConv2d.forward = forward  # type: ignore[method-assign]

    ways: dict[str, Callable[[], None]] = {
        "32 bits": lambda: step(False),
        "bf16-mixed": lambda: step(True),
        "bf16-mixed throughout": throughout,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):  # interleaved, so that other work slows all of them alike
        for name, way in ways.items():
            start = time.process_time()
            way()
            seconds[name].append(time.process_time() - start)
    best = {name: min(times) for name, times in seconds.items()}
    for name, time_taken in best.items():
        ratio = time_taken / best["32 bits"]
        each = 1000 * time_taken / PICTURES
        print(f"{name:<22} {each:5.1f} ms per picture, {ratio:.2f} times 32 bits")


if __name__ == "__main__":
    main()
