"""On scenes with a habit, a classifier finds the objects that a captioner makes up.

In training a star stands beside every circle, and no circle stands alone. Of one that does, the
captioner says what usually stands alone: an object that is not there, and that it is sure of.
"""

from pathlib import Path

import numpy as np
import pytest

import sightline
from sightline.captioner import Captioner
from sightline.data.dataset import CaptionedImage
from sightline.data.scene_drawing import SHAPES
from sightline.data.scenes import HABIT, make_scenes
from sightline.encoders.encode import encode_pictures
from sightline.encoders.region_cache import RegionCache
from sightline.recipe import load_recipe
from sightline.support.fit import (
    Sample,
    auc_table,
    choose_others,
    collect,
    combined_scores,
    fit_classifier,
    make_reference_regions,
    verdict_counts,
)
from sightline.training.loop import train

pytestmark = pytest.mark.learning


CIRCLE = {HABIT[0]}


@pytest.fixture(scope="module")
def captioner(tmp_path_factory: pytest.TempPathFactory) -> Captioner:
    folder = tmp_path_factory.mktemp("habit")
    changes = (
        f"encoder.cache={folder / 'regions'}",
        "data.scenes={difficulty: medium, train: 400, dev: 20, test: 20, bias: 1.0}",
        "model={name: soft_attention, region_width: 64, word_width: 64, state_width: 128, "
        "attention_width: 64, dropout: 0.1}",
        "optimizer.learning_rate=0.003",
        "batch.size=10",
        "dev={metric: BLEU-4, every: 10, patience: 0, beam: 1}",
        "epochs=10",
    )
    train(load_recipe("scenes/soft_attention", changes), folder / "run")
    return sightline.load(folder / "run")


def scenes(seed: int) -> list[CaptionedImage]:
    """Circles, with a star beside every other one; and a few scenes without a circle."""
    made = make_scenes(700, seed=seed, bias=0.5)
    circles = [scene for scene in made if HABIT[0] in scene.captions[0]]
    others = [scene for scene in made if HABIT[0] not in scene.captions[0]]
    return circles[:80] + others[:40]


def of_objects(sample: Sample) -> np.ndarray:
    return np.isin(sample.words, list(SHAPES))


def test_made_up_objects_are_found(captioner: Captioner, tmp_path: Path) -> None:
    cache = RegionCache.for_encoder(captioner.encoder, tmp_path)
    held_out, unseen = scenes(101), scenes(202)
    encode_pictures([s.picture for s in held_out + unseen], captioner.encoder, cache)
    others, rest = choose_others(held_out)
    reference_regions = make_reference_regions([image.picture for image in others], cache)
    classifier = fit_classifier(
        collect(
            captioner.model, captioner.vocabulary, captioner.options, rest, cache, reference_regions
        ),
        reference_regions,
    )
    words = collect(
        captioner.model, captioner.vocabulary, captioner.options, unseen, cache, reference_regions
    )
    objects = words.only(of_objects(words))
    lone = [n for n, scene in enumerate(unseen) if {g.label for g in scene.groundings} == CIRCLE]
    made_up = ~objects.right & np.isin(objects.pictures, lone)
    assert made_up.sum() >= 20  # the habit was learnt
    scores = combined_scores(objects, classifier)
    areas = {found.name: found.corpus for found in auc_table(objects, scores)}
    assert areas["combination"] > 0.9
    # To be likely is no sign of it: habits are.
    assert areas["log_probability"] < 0.6
    counts = verdict_counts(classifier, scores, objects.right)
    bad, right_among_bad = counts["not supported"]
    good, right_among_good = counts["seen"]
    assert right_among_bad < bad / 3
    assert right_among_good > 0.9 * good
    assert bad >= 15
    assert good >= 60
