import sys
import types

import numpy as np
import pytest

from sightline.errors import DataError
from sightline.metrics import (
    METRICS,
    Score,
    bleu,
    cider,
    cider_d,
    document_frequencies,
    measure,
    rouge_l,
)

CANDIDATES = ["A dog runs.", "two men sit on grass"]
REFERENCES = [["a dog runs fast", "the dog"], ["two men sit", "men on the grass"]]


def test_each_name_gives_what_its_function_gives():
    scores = measure(CANDIDATES, REFERENCES, ["bleu", "rouge-l", "cider-d", "cider", "bleu-no-bp"])
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
    (score,) = measure(CANDIDATES, REFERENCES, ["cider-d"], frequencies)
    assert score.corpus == cider_d(CANDIDATES, REFERENCES, frequencies).corpus


def test_a_metric_elsewhere_is_imported_when_asked_for(monkeypatch):
    seen = []

    def meteor(candidates, references):
        seen.append((candidates, references))
        return Score("METEOR", 0.5, np.array([0.5, 0.5]))

    module = types.ModuleType("sightline.metrics.meteor")
    module.meteor = meteor
    monkeypatch.setitem(sys.modules, "sightline.metrics.meteor", module)
    (score,) = measure(CANDIDATES, REFERENCES, ["METEOR"])
    assert score.name == "METEOR"
    assert seen == [(CANDIDATES, REFERENCES)]  # raw captions: it tokenizes by itself


@pytest.mark.parametrize("name", METRICS)
def test_every_name_leads_to_a_function(name):
    from sightline.metrics import report

    if name in report._READING:
        module, function = report._READING[name]
        assert callable(getattr(pytest.importorskip(module), function))
    else:
        assert callable(report._COUNTING[name])


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(DataError, match="unknown metric 'blue': did you mean 'bleu'"):
        measure(CANDIDATES, REFERENCES, ["blue"])
    with pytest.raises(DataError, match="choose from bleu"):
        measure(CANDIDATES, REFERENCES, ["xyzzy"])
