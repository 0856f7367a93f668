"""Caption sets on which the metrics must equal the reference scorers."""

import random

import pytest

WORDS = ["a", "the", "dog", "cat", "man", "red", "runs", "sits", "on", "grass", "n't", "st."]


def sentences(rng, count, shortest, longest):
    return [" ".join(rng.choices(WORDS, k=rng.randint(shortest, longest))) for _ in range(count)]


def make(kind):
    """Candidates and references, already tokens joined by spaces."""
    rng = random.Random(kind)
    if kind == "ordinary":
        return sentences(rng, 60, 5, 15), [sentences(rng, 5, 5, 15) for _ in range(60)]
    if kind == "copies":
        references = [sentences(rng, 5, 5, 12) for _ in range(30)]
        return [rng.choice(captions) for captions in references], references
    if kind == "empty candidates":
        return ["", "a dog", ""], [["a dog", "the cat"], ["a dog"], ["", "a"]]
    if kind == "empty references":
        return ["a dog", "", "the cat sits"], [[""], [""], ["", "the cat sits"]]
    if kind == "one word":
        return ["dog", "cat", "a"], [["dog"], ["a cat", "cat"], ["the", "a"]]
    if kind == "repeated words":
        return ["a a a a a a", "dog dog cat cat"], [["a a", "a dog a"], ["cat cat cat", "dog dog"]]
    if kind == "very long":
        return sentences(rng, 6, 1, 400), [sentences(rng, 3, 1, 400) for _ in range(6)]
    if kind == "single reference":
        return sentences(rng, 40, 1, 12), [sentences(rng, 1, 1, 12) for _ in range(40)]
    if kind == "fifty references":
        return sentences(rng, 8, 3, 12), [sentences(rng, 50, 3, 12) for _ in range(8)]
    if kind == "differing numbers":
        return sentences(rng, 30, 0, 9), [
            sentences(rng, rng.randint(1, 9), 0, 9) for _ in range(30)
        ]
    if kind == "one picture":
        return sentences(rng, 1, 5, 9), [sentences(rng, 5, 5, 9)]
    raise ValueError(kind)


@pytest.fixture(
    params=[
        "ordinary",
        "copies",
        "empty candidates",
        "empty references",
        "one word",
        "repeated words",
        "very long",
        "single reference",
        "fifty references",
        "differing numbers",
        "one picture",
    ]
)
def caption_set(request):
    return make(request.param)


@pytest.fixture
def reference_value():
    """Corpus and per-image values of one of pycocoevalcap's scorers."""

    def score(scorer, candidates, references, **options):
        results = {number: [caption] for number, caption in enumerate(candidates)}
        truth = {number: list(captions) for number, captions in enumerate(references)}
        return scorer.compute_score(truth, results, **options)

    return score
