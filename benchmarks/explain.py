"""What LRP of a caption costs, in forward passes.

A caption of twelve words is explained, every word of it, by a captioner of random weights at the
default sizes over EfficientNet-Lite2 (9 x 9 regions). To the pixels, the unit is one forward pass
of encoder and captioner for the same picture and caption, as captioning runs them; to
the regions, one of the captioner. *Contrastive* is contrastive LRP, which pages open on, to the
pixels. All are measured in turn in every round, so
that a busy machine slows them alike, in time of this process.

    python benchmarks/explain.py [--rounds 5] [--model grid_td] [--encoder efficientnet_lite2]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from sightline.encoders.encoder import create_encoder
from sightline.explain.lrp.contrastive import contrastive_lrp
from sightline.explain.lrp.method import lrp
from sightline.explain.targets import Targets
from sightline.models.registry import create_model, list_models
from sightline.regions import Regions
from sightline.text.vocabulary import START

WORDS, VOCABULARY = 12, 2_540


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", choices=list_models(), action="append", help="default: all")
    parser.add_argument("--encoder", default="efficientnet_lite2")
    arguments = parser.parse_args()
    encoder = create_encoder(arguments.encoder)
    size = encoder.preprocessing.size
    torch.manual_seed(0)
    pixels = torch.randint(256, (1, size, size, 3), dtype=torch.uint8)
    window = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
    print(f"{arguments.encoder}, {WORDS} words, threads: {torch.get_num_threads()}")
    print("passes for LRP to       regions   pixels  contrastive")
    for name in arguments.model or list_models():
        model = create_model(name, VOCABULARY, encoder.dim).eval()
        tokens = torch.randint(4, VOCABULARY, (1, 1, WORDS))
        tokens[..., 0] = START
        places = torch.arange(WORDS)[None]
        words = torch.cat([tokens[0, :, 1:], torch.randint(4, VOCABULARY, (1, 1))], 1)
        regions = encoder(pixels, window)
        x = encoder.normalise(pixels)
        to_regions = Targets(model, regions, tokens, places, words)
        to_pixels = Targets(model, regions, tokens, places, words, encoder, x)

        def encode() -> Regions:
            with torch.inference_mode():
                return encoder(pixels, window)

        def decode() -> None:
            with torch.inference_mode():
                model(regions, tokens)  # noqa: B023

        runs: list[Callable[[], object]] = [
            encode,
            decode,
            lambda: lrp(to_regions),  # noqa: B023
            lambda: lrp(to_pixels),  # noqa: B023
            lambda: contrastive_lrp(to_pixels),  # noqa: B023
        ]
        rounds = [[seconds(run) for run in runs] for _ in range(arguments.rounds + 1)][1:]
        near = statistics.median(r / d for _, d, r, _, _ in rounds)
        far, contrastive = (
            statistics.median(row[n] / (row[0] + row[1]) for row in rounds) for n in (3, 4)
        )
        print(f"{name:21} {near:9.1f} {far:8.1f} {contrastive:12.1f}", flush=True)


def seconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


if __name__ == "__main__":
    main()
