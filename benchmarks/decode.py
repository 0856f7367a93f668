"""Beam search over batches of pictures, against the same search one picture at a time.

The captioner is `soft_attention` at the sizes of Flickr8k. Its weights are random, which hardly
ever end a caption; a maximal length of 11 words, the mean of Flickr8k, does. All ways of batching
caption the same pictures, encoding their regions included; every round measures each of them once,
in turn, so that a busy machine slows them all alike.

    OMP_NUM_THREADS=1 python benchmarks/decode.py
"""

import argparse
import statistics
import time

import torch

from sightline.data.vocabulary import END
from sightline.decoding.beam import BeamOptions, beam_search
from sightline.decoding.constraints import Constraints
from sightline.encoders.regions import Regions
from sightline.models.interface import CaptionModel
from sightline.models.registry import create_model

VOCABULARY, REGIONS, REGION_DIM = 2_540, 49, 1_280  # Flickr8k with EfficientNet-Lite0
OPTIONS = BeamOptions(beam=5, constraints=Constraints(max_length=11))
BATCHES = (1, 8, 32, 128)
PICTURES = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    model = flickr8k_captioner()
    vectors = torch.randn(PICTURES, REGIONS, REGION_DIM)
    lengths = caption_all(model, vectors[:32], 32)  # warms up, too
    print(
        f"{len(vectors)} pictures, beam {OPTIONS.beam}, captions of {statistics.mean(lengths):.1f} "
        f"words, threads: {torch.get_num_threads()}"
    )
    seconds: dict[int, list[float]] = {batch: [] for batch in BATCHES}
    processor: dict[int, list[float]] = {batch: [] for batch in BATCHES}
    for _ in range(arguments.rounds):
        for batch in BATCHES:
            began, worked = time.perf_counter(), time.process_time()
            caption_all(model, vectors, batch)
            seconds[batch].append(time.perf_counter() - began)
            processor[batch].append(time.process_time() - worked)

    print("batch  captions/s  times the loop over single pictures: by the clock  by processor time")
    for batch in BATCHES:
        speed = len(vectors) / statistics.median(seconds[batch])
        print(f"{batch:5}  {speed:10.1f}{gain(seconds, batch):>49}{gain(processor, batch):>19}")


def gain(taken: dict[int, list[float]], batch: int) -> str:
    """How many times faster than single pictures: the median of the rounds, and their range."""
    gains = [one / many for one, many in zip(taken[1], taken[batch], strict=True)]
    return f"{statistics.median(gains):.2f} ({min(gains):.2f}-{max(gains):.2f})"


def flickr8k_captioner() -> CaptionModel:
    """Random weights whose words depend on the picture and on the words before."""
    model = create_model("soft_attention", VOCABULARY, REGION_DIM).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # as they come, all words are about as likely
    return model


@torch.inference_mode()
def caption_all(model: CaptionModel, vectors: torch.Tensor, batch: int) -> list[int]:
    """Caption the pictures, `batch` at a time; the number of words of each caption."""
    lengths: list[int] = []
    for part in vectors.split(batch):
        boxes = torch.zeros(len(part), part.shape[1], 4)
        mask = torch.ones(part.shape[:2], dtype=torch.bool)
        found = beam_search(model, model.encode(Regions(part, mask, boxes)), OPTIONS)
        lengths += (found.tokens[:, 0] > END).sum(-1).tolist()
    return lengths


if __name__ == "__main__":
    main()
