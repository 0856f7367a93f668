"""METEOR beside the Java original: equal values, and the time of both from a cold start.

    python benchmarks/meteor.py                          # caption sets of several kinds from COCO
    python benchmarks/meteor.py --dataset FOLDER         # first caption against the others, too
    python benchmarks/meteor.py --images 1000            # quicker

Needs `java`. The COCO captions are read from inside the pycocoevalcap wheel. Both sides get the
same words, each in a process of its own that starts, loads its data and scores; ours opens an index
that was built before. Seconds are those of the clock, then those of the processors.
"""

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pycocoevalcap.meteor.meteor

from sightline.data.readers import read_dataset
from sightline.metrics import meteor_data, tokenize

Values = tuple[float, list[float]]
CaptionSet = tuple[list[str], list[list[str]]]

METEOR = Path(pycocoevalcap.meteor.meteor.__file__).parent
OURS = """
import json, sys
from sightline.metrics.meteor.scorer import meteor
score = meteor(*json.load(sys.stdin), tokenizer=str.split)
json.dump([score.corpus, score.per_image.tolist()], sys.stdout)
"""
MARKS = [
    *("(", ")", "-", "--", "...", "$5", "1,000", "3.5", "no. 5", "mr. smith", "u.s.", "it's"),
    *("don't", "&", "%", "90's", "/", ";", '"', "!", "50%", "#1", "p.m.", "'", "-lrb-", "1st"),
]


def words(captions: list[str]) -> list[str]:
    return [" ".join(tokenize(caption)) for caption in captions]


def coco_captions() -> list[list[str]]:
    """Five captions of each picture of COCO's validation set, in an order of our own."""
    pictures: dict[int, list[str]] = {}
    with zipfile.ZipFile(METEOR.parent / "spice" / "spice-1.0.jar") as jar:
        name = next(name for name in jar.namelist() if name.endswith("captions_val2014.json"))
        for record in json.loads(jar.read(name))["annotations"]:
            caption = " ".join(record["caption"].split())
            pictures.setdefault(record["image_id"], []).append(caption)
    captions = [texts[:5] for texts in pictures.values()]
    random.Random(0).shuffle(captions)
    return captions


def shuffled(rng: random.Random, text: str) -> str:
    return " ".join(rng.sample(parts := text.split(), len(parts)))


def repeated(rng: random.Random, text: str) -> str:
    return " ".join(word for word in text.split() for _ in range(rng.choice([1, 1, 2, 3])))


def marked(rng: random.Random, text: str) -> str:
    parts = text.split()
    for mark in rng.choices(MARKS, k=3):
        parts.insert(rng.randint(0, len(parts)), mark)
    return " ".join(parts)


def nearest(rng: random.Random, text: str, pool: list[str]) -> str:
    """Of some captions of other pictures the one that shares most words, as a captioner's would."""
    words = set(text.split())
    captions = (caption.split() for caption in rng.sample(pool, 60))
    return " ".join(
        max(captions, key=lambda caption: len(words & set(caption)) / (1 + len(caption)))
    )


def coco_sets(images: int) -> Iterator[tuple[str, CaptionSet]]:
    raw = coco_captions()
    rng = random.Random(1)
    captions = [words(texts) for texts in raw[:images]]
    few = captions[: images // 5]
    pool = [texts[0] for texts in map(words, raw[images : images + 3000])]
    one_against_four = [texts[0] for texts in captions], [texts[1:] for texts in captions]
    yield "one person against four", one_against_four
    yield "captions of similar pictures", ([nearest(rng, t[0], pool) for t in captions], captions)
    yield "words shuffled", ([shuffled(rng, texts[0]) for texts in few], few)
    yield (
        "words repeated",
        (
            [repeated(rng, texts[0]) for texts in few],
            [[repeated(rng, text) for text in texts[1:]] for texts in few],
        ),
    )
    yield (
        "numbers and marks",
        (
            [marked(rng, texts[0]) for texts in few],
            [[marked(rng, text) for text in texts[1:]] for texts in few],
        ),
    )
    yield (
        "very long",
        (
            [" ".join(rng.choice(captions)[0] for _ in range(6)) for _ in few[:200]],
            [[" ".join(rng.choice(captions)[1] for _ in range(6))] * 2 for _ in few[:200]],
        ),
    )
    yield (
        "none, one or two words",
        (
            [" ".join(texts[0].split()[: rng.randint(0, 2)]) for texts in few],
            [[" ".join(text.split()[: rng.choice([0, 1, 9])]) for text in texts] for texts in few],
        ),
    )
    yield "copies of a reference", ([rng.choice(texts) for texts in few], few)
    plain = raw[: len(few)]
    yield "plain text", ([texts[0] for texts in plain], [texts[1:] for texts in plain])


def dataset_set(path: Path) -> CaptionSet:
    captions = [words(list(picture.captions)) for picture in read_dataset(path)]
    captions = [texts for texts in captions if len(texts) > 1]
    return [texts[0] for texts in captions], [texts[1:] for texts in captions]


def score_here(candidates: list[str], references: list[list[str]]) -> Values:
    question = json.dumps([candidates, references])
    command = [sys.executable, "-c", OURS]
    answer = subprocess.run(command, input=question, stdout=subprocess.PIPE, text=True, check=True)
    corpus, per_image = json.loads(answer.stdout)
    return corpus, per_image


def score_jar(candidates: list[str], references: list[list[str]]) -> Values:
    command = ["java", "-Xmx2G", "-jar", METEOR / "meteor-1.5.jar"]
    command += ["-", "-", "-stdio", "-l", "en", "-norm"]
    process = subprocess.Popen(
        command, cwd=METEOR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    with process as jar:
        assert jar.stdin is not None
        assert jar.stdout is not None
        statistics = []
        for candidate, texts in zip(candidates, references, strict=True):
            print("SCORE", *texts, candidate, sep=" ||| ", file=jar.stdin, flush=True)
            statistics.append(jar.stdout.readline().strip())
        print("EVAL", *statistics, sep=" ||| ", file=jar.stdin, flush=True)
        per_image = [float(jar.stdout.readline()) for _ in candidates]
        corpus = float(jar.stdout.readline())
        jar.stdin.close()
    return corpus, per_image


def timed(score: Callable[..., Values], caption_set: CaptionSet) -> tuple[Values, float, float]:
    """Values, seconds of the clock, seconds of all processors the child process used."""
    clock, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    values = score(*caption_set)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return values, time.perf_counter() - clock, busy


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--dataset", type=Path, help="a caption file or folder, besides COCO")
    options = parser.parse_args()
    if not shutil.which("java"):
        sys.exit("benchmarks/meteor.py compares with METEOR's jar: it needs java on the path")
    meteor_data.load()

    sets = coco_sets(options.images)
    if options.dataset:
        sets = iter([(options.dataset.name, dataset_set(options.dataset)), *sets])
    print(
        "| captions | pictures | ours | jar | largest per-image difference | within 1e-6 |", end=""
    )
    print(" seconds, ours / jar | processor seconds, ours / jar |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, caption_set in sets:
        (corpus, each), clock, busy = timed(score_here, caption_set)
        (their_corpus, their_each), their_clock, their_busy = timed(score_jar, caption_set)
        difference = np.abs(np.subtract(each, their_each))
        print(
            f"| {name} | {len(each):,} | {corpus:.8f} | {their_corpus:.8f} | "
            f"{difference.max():.1e} | {np.mean(difference < 1e-6):.2%} | "
            f"{clock:.1f} / {their_clock:.1f} | {busy:.1f} / {their_busy:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
