"""What it costs to check the words of a caption, in times of captioning the picture.

A captioner of random weights at the default sizes over EfficientNet-Lite2 captions a picture (the
encoder, and a beam of five), and a caption of ten words, six of them content words, is checked.
Both are measured in turn in every round, in time of this process.

    python benchmarks/support.py [--rounds 5] [--model soft_attention]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from sightline.decoding.beam import BeamOptions, beam_search
from sightline.decoding.constraints import Constraints
from sightline.encoders.encoder import create_encoder
from sightline.models.registry import create_model, list_models
from sightline.regions import Regions
from sightline.support.classifier import score_words
from sightline.text.vocabulary import Vocabulary

REFERENCES = 9  # a blank and eight pictures
CAPTION = "a brown dog runs through the grass with a ball"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", choices=list_models(), action="append", help="default: all")
    arguments = parser.parse_args()
    encoder = create_encoder("efficientnet_lite2")
    size = encoder.preprocessing.size
    torch.manual_seed(0)
    pixels = torch.randint(256, (REFERENCES, size, size, 3), dtype=torch.uint8)
    windows = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).repeat(REFERENCES, 1)
    encoded = encoder(pixels, windows)
    reference_regions = Regions(encoded.vectors.detach(), encoded.mask, encoded.boxes)
    words = sorted(set(CAPTION.split()))
    vocabulary = Vocabulary([*words, *(f"word{n}" for n in range(2_536 - len(words)))])
    options = BeamOptions(constraints=Constraints(min_length=10, max_length=10))
    print("model                  check / caption   seconds of a check")
    for name in arguments.model or list_models():
        model = create_model(name, len(vocabulary), encoder.dim).eval()

        def caption() -> None:
            with torch.inference_mode():
                regions = encoder(pixels[:1], windows[:1])
                beam_search(model, model.encode(regions), options)  # noqa: B023

        def check() -> None:
            said = [vocabulary.encode(CAPTION)]
            score_words(model, vocabulary, reference_regions[:1], said, reference_regions)  # noqa: B023

        rounds = [(seconds(caption), seconds(check)) for _ in range(arguments.rounds + 1)][1:]
        ratio = statistics.median(checked / captioned for captioned, checked in rounds)
        took = statistics.median(checked for _, checked in rounds)
        print(f"{name:21} {ratio:9.1f}         {took:9.2f}")


def seconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


if __name__ == "__main__":
    main()
