"""BLEU, ROUGE-L, CIDEr and CIDEr-D beside pycocoevalcap: equal values, and how much less time.

    python benchmarks/metrics.py                      # 40,000 COCO pictures x 5 references
    python benchmarks/metrics.py --dataset FOLDER     # first caption against the others
    python benchmarks/metrics.py --reward             # CIDEr-D as a training reward

The COCO captions are read from inside the pycocoevalcap wheel. A candidate there is the first half
of one reference and the second half of another: close to its references, as a captioner's are, but
its height says nothing about captioning. Both sides get the same tokens and are timed in CPU
seconds of one thread, in one run.
"""

import argparse
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pycocoevalcap.bleu.bleu
import pycocoevalcap.cider.cider
import pycocoevalcap.rouge.rouge

from sightline.data.readers import read_dataset
from sightline.metrics import Bleu, Cider, CiderD, CiderReward, Corpus, RougeL, tokenize

CaptionSet = tuple[list[str], list[list[str]]]


def coco_captions() -> list[list[str]]:
    """The captions of each COCO 2014 picture, from the SPICE jar of the installed wheel."""
    jar = Path(pycocoevalcap.bleu.bleu.__file__).parents[1] / "spice" / "spice-1.0.jar"
    pictures: dict[int, list[str]] = {}
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if "captions_" in name:
                for record in json.loads(archive.read(name))["annotations"]:
                    pictures.setdefault(record["image_id"], []).append(record["caption"])
    return list(pictures.values())


def tokenized(captions: list[str]) -> list[str]:
    return [" ".join(tokenize(caption)) for caption in captions]


def coco_set(images: int) -> CaptionSet:
    references = [tokenized(captions[:5]) for captions in coco_captions()[:images]]
    candidates = []
    for first, second, *_ in references:
        start, end = first.split(), second.split()
        candidates.append(" ".join(start[: len(start) // 2] + end[len(end) // 2 :]))
    return candidates, references


def dataset_set(path: Path) -> CaptionSet:
    captions = [tokenized(list(picture.captions)) for picture in read_dataset(path)]
    captions = [texts for texts in captions if len(texts) > 1]
    return [texts[0] for texts in captions], [texts[1:] for texts in captions]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def compare(candidates: list[str], references: list[list[str]]) -> None:
    results = {number: [caption] for number, caption in enumerate(candidates)}
    truth = dict(enumerate(references))
    corpus, reading = timed(lambda: Corpus(str.split).add(candidates, references))
    _, counting = timed(lambda: (corpus.overlap, corpus.frequencies))
    bleus, bleu_time = timed(lambda: Bleu().of(corpus))
    rouge, rouge_time = timed(lambda: RougeL().of(corpus))
    robust, robust_time = timed(lambda: CiderD.of(corpus))
    plain, plain_time = timed(lambda: Cider.of(corpus))
    ours = reading + counting + bleu_time + rouge_time + robust_time + plain_time

    scorer = pycocoevalcap.bleu.bleu.Bleu(4)
    (values, per_image), theirs_bleu = timed(
        lambda: scorer.compute_score(truth, results, verbose=0)
    )
    their_rouge, theirs_rouge = timed(
        lambda: pycocoevalcap.rouge.rouge.Rouge().compute_score(truth, results)
    )
    their_cider, theirs_cider = timed(
        lambda: pycocoevalcap.cider.cider.Cider().compute_score(truth, results)
    )
    theirs = theirs_bleu + theirs_rouge + theirs_cider

    expected = [*zip(values, per_image, strict=True), their_rouge, their_cider]
    print(f"{len(candidates):,} pictures, {sum(map(len, references)):,} references\n")
    print("| metric | ours | reference | corpus difference | largest per-image difference |")
    print("| --- | --- | --- | --- | --- |")
    for score, (value, each) in zip([*bleus, rouge, robust], expected, strict=True):
        largest = np.abs(score.per_image - np.asarray(each)).max()
        gap = abs(score.corpus - value)
        print(f"| {score.name} | {score.corpus:.6f} | {value:.6f} | {gap:.1e} | {largest:.1e} |")
    print(f"| {plain.name} | {plain.corpus:.6f} | | | |")
    print("\n| CPU seconds | ours | reference |")
    print("| --- | --- | --- |")
    print(f"| words to ids | {reading:.2f} | |")
    print(f"| n-grams, shared by BLEU and CIDEr | {counting:.2f} | |")
    print(f"| BLEU-1..4 | {bleu_time:.2f} | {theirs_bleu:.2f} |")
    print(f"| ROUGE-L | {rouge_time:.2f} | {theirs_rouge:.2f} |")
    print(f"| CIDEr-D | {robust_time:.2f} | {theirs_cider:.2f} |")
    print(f"| CIDEr | {plain_time:.2f} | not there |")
    print(f"| all | {ours:.2f} | {theirs:.2f} |")
    print(f"\nThe reference takes {theirs / ours:.1f} times as long.")


def reward(pictures: int = 6000, batch: int = 32, samples: int = 5, repeats: int = 20) -> None:
    captions = [tokenized(texts[:5]) for texts in coco_captions()[:pictures]]
    ids: dict[str, int] = {}
    words = [
        [[ids.setdefault(word, len(ids) + 1) for word in text.split()] for text in texts]
        for texts in captions
    ]
    prepared, preparing = timed(lambda: CiderReward(words, end=0))
    random = np.random.default_rng(0)
    image = np.repeat(random.integers(pictures, size=batch), samples)
    rows = np.zeros((len(image), 20), np.int64)
    for row, number in zip(rows, image, strict=True):
        text = words[random.choice([number, random.integers(pictures)])][random.integers(5)][:20]
        row[: len(text)] = text
    times = [timed(lambda: prepared.score_ids(rows, image))[1] for _ in range(repeats)]
    print(f"{pictures:,} pictures prepared in {preparing:.2f} s")
    print(f"{batch} x {samples} captions scored in {1000 * min(times):.1f} ms (best of {repeats})")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--images", type=int, default=40_000)
    parser.add_argument("--dataset", type=Path, help="a caption file or folder instead of COCO")
    parser.add_argument("--reward", action="store_true")
    options = parser.parse_args()
    if options.reward:
        reward()
    else:
        compare(*(dataset_set(options.dataset) if options.dataset else coco_set(options.images)))


if __name__ == "__main__":
    main()
