"""Beam search over batches of pictures, against the same search one picture at a time.

The captioner is `soft_attention` at the sizes of paper 1's COCO model and at those of our Flickr8k
recipe. Its weights are random, but words are as frequent as Zipf's law has it, so that rows share
words as they do in real captions. It hardly ever ends a caption; a maximal length of 11 words, the
mean of Flickr8k, does. All ways of batching caption the same pictures, encoding their regions
included; every round measures each of them once, in turn, so that a busy machine slows them all
alike.

The loop over single pictures is no straw man: it keeps the keys and steps its five beams together.
A batch gains what the processor multiplies faster with many rows than with five, which is the more,
the less of the weights its cache holds.

    python benchmarks/decode.py [--rounds 5] [--size coco]
"""

import argparse
import statistics
import time
from typing import NamedTuple

import torch

from sightline.decoding.beam import BeamOptions, beam_search
from sightline.decoding.constraints import Constraints
from sightline.models.interface import CaptionModel
from sightline.models.soft_attention import SoftAttention, SoftAttentionConfig
from sightline.regions import Regions
from sightline.text.vocabulary import END, UNKNOWN


class Size(NamedTuple):
    state: int
    vocabulary: int
    regions: int
    region_dim: int


SIZES = {
    "coco": Size(1_800, 10_000, 196, 512),  # the original code's, over VGG-19
    "flickr8k": Size(512, 2_540, 49, 1_280),  # over EfficientNet-Lite0
}
OPTIONS = BeamOptions(beam=5, constraints=Constraints(max_length=11))
BATCHES = (1, 8, 32, 128)
PICTURES = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", choices=list(SIZES), action="append", help="default: all")
    arguments = parser.parse_args()
    for name in arguments.size or SIZES:
        compare(name, SIZES[name], arguments.rounds)


def compare(name: str, size: Size, rounds: int) -> None:
    torch.manual_seed(0)
    model = make_captioner(size)
    vectors = torch.randn(PICTURES, size.regions, size.region_dim)
    lengths = caption_all(model, vectors[:32], 32)  # warms up, too
    print(
        f"{name}: {len(vectors)} pictures, beam {OPTIONS.beam}, captions of "
        f"{statistics.mean(lengths):.1f} words, threads: {torch.get_num_threads()}"
    )
    seconds: dict[int, list[float]] = {batch: [] for batch in BATCHES}
    for _ in range(rounds):
        for batch in BATCHES:
            began = time.perf_counter()
            caption_all(model, vectors, batch)
            seconds[batch].append(time.perf_counter() - began)

    print("batch  captions/s  times the loop over single pictures")
    for batch in BATCHES:
        speed = len(vectors) / statistics.median(seconds[batch])
        print(f"{batch:5}  {speed:10.1f}{gain(seconds, batch):>37}")


def gain(taken: dict[int, list[float]], batch: int) -> str:
    """How many times faster than single pictures: the median of the rounds, and their range."""
    gains = [single / batched for single, batched in zip(taken[1], taken[batch], strict=True)]
    return f"{statistics.median(gains):.2f} ({min(gains):.2f}-{max(gains):.2f})"


def make_captioner(size: Size) -> SoftAttention:
    """Random weights whose words depend on the picture and on the words before."""
    config = SoftAttentionConfig(
        state_width=size.state, region_width=0 if size.region_dim == 512 else 512
    )
    model = SoftAttention(size.vocabulary, size.region_dim, config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # as they come, all words are about as likely
        rank = torch.arange(size.vocabulary).roll(UNKNOWN + 1) + 1  # the special words come last
        model.output.bias.sub_(0.6 * rank.log())
    return model


@torch.inference_mode()
def caption_all(model: CaptionModel, vectors: torch.Tensor, batch: int) -> list[int]:
    """Caption the pictures, `batch` at a time; the number of words of each caption."""
    lengths: list[int] = []
    for part in vectors.split(batch):
        boxes = torch.zeros(len(part), part.shape[1], 4)
        mask = torch.ones(part.shape[:2], dtype=torch.bool)
        hypotheses = beam_search(model, model.encode(Regions(part, mask, boxes)), OPTIONS)
        lengths += (hypotheses.tokens[:, 0] > END).sum(-1).tolist()
    return lengths


if __name__ == "__main__":
    main()
