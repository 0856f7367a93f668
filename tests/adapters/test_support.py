"""Words of an adapted captioner are scored, fitted and checked as those of ours."""

import shutil

import numpy as np
import pytest
from PIL import Image

import sightline
from sightline.adapters.tiny import tiny
from sightline.data.dataset import CaptionedImage
from sightline.evaluation.evaluate import evaluate
from sightline.evaluation.support import fit_support


@pytest.fixture
def folder(tmp_path):
    model, (image_processor, tokenizer) = tiny("blip")
    for part in (model, image_processor, tokenizer):
        part.save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


@pytest.fixture
def images(tmp_path):
    random = np.random.default_rng(0)
    made = []
    for n in range(40):
        path = tmp_path / f"{n}.png"
        Image.fromarray(random.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(path)
        made.append(CaptionedImage(str(n), path, ("a dog runs", "two cats sit")))
    return made


def test_support_is_fitted_and_words_are_checked(folder, images, monkeypatch):
    flips = iter(range(10_000))
    monkeypatch.setattr(
        "sightline.support.fit.label_words", lambda said, _: [next(flips) % 2 == 0 for _ in said]
    )
    monkeypatch.setattr("sightline.evaluation.support.OTHER_KINDS", 12)
    captioner = sightline.load(f"hf:{folder}")
    captioner.options = captioner.options.changed({"beam": 1, "max_length": 4})
    (report,) = fit_support(captioner, images)
    names = set(report.sample.names)
    assert {"occlusion", "blank", "other_picture", "log_probability", "agreement"} <= names
    assert np.isfinite(report.sample.scores).all()
    again = sightline.load(f"hf:{folder}")
    assert again.can_check
    read = again.check(images[0].picture, again.read(images[0].picture, "a dog barks"))
    assert [word.support is not None for word in read.words] == [False, True, True]
    assert 0 <= read.words[2].support.score <= 1
    shutil.rmtree(folder)


def test_a_split_is_captioned_and_scored(folder, images, tmp_path):
    captioner = sightline.load(f"hf:{folder}")
    made = evaluate(captioner, images[:3], ["bleu"], folder=tmp_path / "out", beam=1, max_length=3)
    assert len(made.captions) == 3
    assert (tmp_path / "out" / "scores.json").is_file()
    assert made.captions[0] == captioner.caption(images[0].picture, beam=1, max_length=3).text
