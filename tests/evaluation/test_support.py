"""What a report of a check says of pictures is what a user sees."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import sightline
from sightline.data.scenes import make_scene_dataset
from sightline.encoded_picture import join_regions
from sightline.evaluation.support import fit_support
from sightline.support.familiarity import Familiarity, mean_region
from sightline.support.word_detector import WordDetector
from sightline.text.stemmer import stem


def test_the_share_of_unfamiliar_pictures_is_that_of_captions_that_warn(
    fitted_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path))
    captioner = sightline.load(fitted_checkpoint)
    images = make_scene_dataset(2, 24, 1, size=64).split("dev")
    pictures = [image.picture for image in images]
    means = mean_region(join_regions(captioner.encode(pictures)))
    random = torch.Generator().manual_seed(0)
    weights = torch.randn(112, generator=random)
    captioner.familiarity = Familiarity(weights, -float((means @ weights).quantile(0.8)))
    of_one_rule = [captioner.caption(picture).unfamiliar for picture in pictures]
    stems = tuple(dict.fromkeys(stem(word) for word in captioner.vocabulary.words))
    parts = [torch.randn(len(stems), generator=random), torch.randn(32, 224, generator=random)]
    parts += [torch.zeros(32), torch.randn(len(stems), 32, generator=random)]
    detector = WordDetector(stems, *parts, torch.zeros(len(stems)))
    captioner.support_classifier = replace(
        captioner.support_classifier, detector=detector, unsure=0.0
    )
    (report,) = fit_support(captioner, reported=images)
    warned = [captioner.caption(picture).unfamiliar for picture in pictures]
    assert sum(map(bool, of_one_rule)) < sum(map(bool, warned)) < len(images)
    assert report.unfamiliar == pytest.approx(np.mean(warned))
