"""Encoding pictures into a cache, in 32 bits and in bf16, against the bare forward pass in 32.

    python benchmarks/encode.py [--encoder efficientnet_lite0] [--pictures 512] [--rounds 3]

The pictures are cuts of the photographs in `examples/others`, saved as JPEG files, so that each has
to be read, hashed, decoded and resized. The bare pass runs the same batches from memory and does
nothing else. Rounds alternate between all three, so that whatever else the machine does hits each.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from sightline.encoders.encode import encode_pictures
from sightline.encoders.encoder import Encoder, create_encoder
from sightline.encoders.region_cache import Precision, RegionCache
from sightline.encoders.registry import list_encoders

EXAMPLES = Path(__file__).parents[1] / "examples" / "others"


def make_pictures(folder: Path, count: int) -> list[Path]:
    """Cuts of the example photographs, about the size of Flickr8k's (500 x 375)."""
    random = np.random.default_rng(0)
    photographs = [Image.open(path).convert("RGB") for path in sorted(EXAMPLES.glob("*.jpg"))]
    paths = []
    for number in range(count):
        photograph = photographs[number % len(photographs)]
        x0, y0 = random.uniform(0, 0.2, 2) * photograph.size
        x1, y1 = random.uniform(0.8, 1, 2) * photograph.size
        cut = photograph.crop((int(x0), int(y0), int(x1), int(y1)))
        paths.append(folder / f"{number:04d}.jpg")
        cut.resize((500, 375)).save(paths[-1], quality=85)
    return paths


def time_bare(encoder: Encoder, pixels: torch.Tensor, batch_size: int) -> float:
    """Seconds of the forward pass alone."""
    windows = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).expand(len(pixels), 4)
    began = time.perf_counter()
    with torch.inference_mode():
        for start in range(0, len(pixels), batch_size):
            part = slice(start, start + batch_size)
            encoder(pixels[part], windows[part])
    return time.perf_counter() - began


def time_pipeline(
    encoder: Encoder, paths: list[Path], batch_size: int, workers: int, precision: Precision
) -> tuple[float, torch.Tensor]:
    """Seconds from files to a complete cache; and the vectors of the first pictures in it."""
    with tempfile.TemporaryDirectory() as folder:
        cache = RegionCache.for_encoder(encoder, Path(folder), precision)
        began = time.perf_counter()
        errors = encode_pictures(paths, encoder, cache, batch_size=batch_size, workers=workers)
        seconds = time.perf_counter() - began
        assert not errors, errors
        assert len(cache) == len(paths)
        return seconds, cache.regions(np.arange(min(batch_size, len(paths)))).vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--encoder", choices=list_encoders(), default="efficientnet_lite0")
    parser.add_argument("--pictures", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    encoder = create_encoder(options.encoder)
    with tempfile.TemporaryDirectory() as folder:
        paths = make_pictures(Path(folder), options.pictures)
        pixels = torch.from_numpy(np.stack([encoder.preprocessing.load(p)[0] for p in paths]))
        time_bare(encoder, pixels[: options.batch_size], options.batch_size)  # warm up
        bare: list[float] = []
        pipeline: list[float] = []
        half: list[float] = []
        how = (options.batch_size, options.workers)
        for _ in range(options.rounds):
            bare.append(time_bare(encoder, pixels, options.batch_size))
            seconds, exact = time_pipeline(encoder, paths, *how, precision=32)
            pipeline.append(seconds)
            seconds, rounded = time_pipeline(encoder, paths, *how, precision="bf16")
            half.append(seconds)
    ratios = [b / p for b, p in zip(bare, pipeline, strict=True)]
    faster = [p / h for p, h in zip(pipeline, half, strict=True)]
    error = (rounded - exact).norm() / exact.norm()
    cosine = torch.nn.functional.cosine_similarity(rounded, exact, dim=-1).mean()
    print(f"{options.encoder}, {len(paths)} pictures, {torch.get_num_threads()} threads")
    print(
        f"bare forward pass   {len(paths) / min(bare):7.1f} pictures/s (best of {options.rounds})"
    )
    print(f"files to cache      {len(paths) / min(pipeline):7.1f} pictures/s")
    print(f"the same in bf16    {len(paths) / min(half):7.1f} pictures/s")
    print(f"pipeline / bare     {statistics.median(ratios):7.1%} (median round)")
    print(f"bf16 / 32 bits      {statistics.median(faster):7.2f} times as fast (median round)")
    print(f"regions in bf16     relative error {error:.1%}, mean cosine {cosine:.4f}")


if __name__ == "__main__":
    main()
