import numpy as np
import pytest

import sightline
from sightline.errors import DataError
from sightline.metrics import (
    METRICS,
    Score,
    bleu,
    chair,
    cider,
    cider_d,
    document_frequencies,
    rouge_l,
    scoring,
)

CANDIDATES = ["A dog runs.", "two men sit on grass"]
REFERENCES = [["a dog runs fast", "the dog"], ["two men sit", "men on the grass"]]


def test_each_name_gives_what_its_function_gives():
    metrics = ["bleu", "rouge-l", "cider-d", "cider", "bleu-no-bp"]
    scores = sightline.score(CANDIDATES, REFERENCES, metrics).values()
    expected = [
        *bleu(CANDIDATES, REFERENCES),
        rouge_l(CANDIDATES, REFERENCES),
        cider_d(CANDIDATES, REFERENCES),
        cider(CANDIDATES, REFERENCES),
        *bleu(CANDIDATES, REFERENCES, brevity_penalty=False),
    ]
    assert [score.name for score in scores] == [score.name for score in expected]
    assert [score.corpus for score in scores] == [score.corpus for score in expected]
    for score, other in zip(scores, expected, strict=True):
        assert score.per_image.tolist() == other.per_image.tolist()


def test_saved_frequencies_reach_cider():
    frequencies = document_frequencies([["a dog"], ["a cat"], ["two men on grass"]])
    (score,) = sightline.score(CANDIDATES, REFERENCES, ["cider-d"], frequencies).values()
    assert score.corpus == cider_d(CANDIDATES, REFERENCES, frequencies).corpus


def test_annotated_categories_reach_chair():
    captions, references = ["a dog and a cat", "a man"], [["a dog"], ["a picture"]]
    annotated = [["cat"], []]
    for given in (None, annotated):
        scores = sightline.score(captions, references, ["chair"], annotated=given).values()
        expected = chair(captions, references, annotated=given)
        assert [score.name for score in scores] == ["CHAIRi", "CHAIRs"]
        assert [score.corpus for score in scores] == [score.corpus for score in expected]
    assert [score.corpus for score in scores] == [1 / 3, 1 / 2]


def test_other_metrics_are_given_raw_captions(monkeypatch):
    seen = []

    def meteor(candidates, references):
        seen.append((candidates, references))
        return Score("METEOR", 0.5, np.array([0.5, 0.5]))

    monkeypatch.setitem(scoring._READING, "meteor", meteor)
    (score,) = sightline.score(CANDIDATES, REFERENCES, ["METEOR"]).values()
    assert score.name == "METEOR"
    assert seen == [(CANDIDATES, REFERENCES)]  # it tokenizes by itself


def test_scores_by_name():
    scored = sightline.score(CANDIDATES, REFERENCES, ["cider-d", "bleu"])
    assert list(scored) == ["CIDEr-D", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4"]
    assert (
        scored["CIDEr-D"].per_image.tolist() == cider_d(CANDIDATES, REFERENCES).per_image.tolist()
    )
    assert scored["BLEU-4"].corpus == bleu(CANDIDATES, REFERENCES)[3].corpus


def test_without_names_the_scores_of_the_command():
    names = ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D", "CIDEr"]
    assert list(sightline.score(CANDIDATES, REFERENCES)) == names


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(DataError, match="unknown metric 'blue': did you mean 'bleu'"):
        sightline.score(CANDIDATES, REFERENCES, ["blue"])
    with pytest.raises(DataError, match=f"choose from {', '.join(METRICS)}"):
        sightline.score(CANDIDATES, REFERENCES, ["xyzzy"])
