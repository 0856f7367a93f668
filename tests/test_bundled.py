"""The captioner that comes with the package."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import sightline
from sightline.captioner import Captioner
from sightline.checkpoint import find_checkpoint
from sightline.data.unlike_photographs import unlike_photographs
from sightline.errors import CheckpointError
from sightline.support.classifier import load_classifier
from sightline.support.familiarity import load_familiarity
from tiny_models import FOR_EVERY_CAPTIONER


@pytest.fixture(scope="module")
def bundled() -> Captioner:
    return sightline.load()


@pytest.mark.parametrize("name", ["model", "encoder", "support", "familiarity"])
def test_a_flipped_bit_is_noticed(name: str, tmp_path: Path) -> None:
    for file in find_checkpoint().iterdir():
        (tmp_path / file.name).symlink_to(file)
    path = tmp_path / f"{name}.safetensors"
    content = bytearray(path.read_bytes())
    content[-len(content) // 3] ^= 1
    path.unlink()
    path.write_bytes(content)
    readers = {"support": load_classifier, "familiarity": load_familiarity}
    with pytest.raises(CheckpointError, match=rf"{name}\.safetensors: damaged"):
        readers.get(name, sightline.load)(tmp_path)


def test_it_is_small_and_has_a_card() -> None:
    folder = find_checkpoint()
    assert sum(file.stat().st_size for file in folder.iterdir()) < 40e6
    weights = load_file(folder / "model.safetensors").values()
    assert all(tensor.dtype == torch.float16 for tensor in weights)
    card = (folder / "README.md").read_text("utf-8")
    for named in ("COCO", "licence", "CIDEr-D", "wrong"):
        assert named in card


def test_it_knows_a_person_when_it_sees_one(bundled: Captioner, examples: Path) -> None:
    names = ("astronaut.jpg", "officer.jpg", "photographer.jpg")
    for caption in bundled.caption([examples / name for name in names]):
        assert {"man", "woman", "person", "boy", "girl"} & set(caption.text.split()), caption
        assert caption.log_probability > -25


def test_it_says_what_the_examples_show(bundled: Captioner, examples: Path) -> None:
    shown = {
        "dog": {"dog", "grass"},
        "duck": {"white", "bird", "water"},
        "mariachi": {"group", "people"},
        "others/cat": {"cat"},
        "others/coffee": {"cup", "coffee", "table"},
        "others/officer": {"man", "hat"},
    }
    captions = bundled.caption([examples.parent / f"{name}.jpg" for name in shown])
    for caption, words in zip(captions, shown.values(), strict=True):
        assert words <= set(caption.text.split()), caption


def test_it_knows_which_pictures_it_does_not_know(bundled: Captioner, examples: Path) -> None:
    assert bundled.familiarity is not None
    familiar = [examples.parent / "dog.jpg", examples.parent / "duck.jpg", examples / "coffee.jpg"]
    assert not any(caption.unfamiliar for caption in bundled.caption(familiar))
    drawn = unlike_photographs(8, seed=1)  # others than those of the fit
    assert all(caption.unfamiliar for caption in bundled.caption(drawn))


@pytest.mark.parametrize("method", [m for m in FOR_EVERY_CAPTIONER if m != "occlusion"])
def test_it_can_be_asked_why(bundled: Captioner, examples: Path, method: str) -> None:
    picture = bundled.open(examples / "photographer.jpg")
    (why,) = bundled.explain(picture, "a man", words=["man"], method=method)
    assert why.heatmap is not None
    assert why.heatmap.shape == (picture.height, picture.width)
    assert abs(why.heatmap).sum() > 0


def test_a_checked_and_explained_caption_does_without_slow_imports(examples: Path) -> None:
    program = (
        "import sys, sightline\n"
        "captioner = sightline.load()\n"
        "picture = captioner.open(sys.argv[1])\n"
        "caption = captioner.caption(picture, check=True)\n"
        "assert captioner.explain(picture, caption, words=[1])\n"
        # Half a second; torch imports it to compare the shapes of multipliers it is given.
        "sys.exit('sympy' in sys.modules)\n"
    )
    picture = str(examples.parent / "dog.jpg")
    assert subprocess.run([sys.executable, "-c", program, picture]).returncode == 0
