"""Every method, on every captioner, asked through one door."""

import numpy as np
import pytest
import torch
from PIL import Image

import sightline
from sightline.errors import ConfigError, SightlineError
from sightline.explain.lrp.mode import LRPMode
from sightline.explain.methods import explain_captions
from sightline.regions import Regions
from sightline.text.vocabulary import SPECIAL, Vocabulary
from tiny_models import CASES, FOR_EVERY_CAPTIONER, REGION_DIM, VOCABULARY, create

WORDS = [f"word{i}" for i in range(VOCABULARY - len(SPECIAL))]


def explain_one(model, vocabulary, regions, caption, *args, **options):
    return explain_captions(model, vocabulary, regions, [caption], *args, **options)[0]


@pytest.fixture
def regions():
    torch.manual_seed(1)
    mask = torch.tensor([[True, True, True, False, True, True]])
    return Regions(torch.randn(1, 6, REGION_DIM).double(), mask, torch.rand(1, 6, 4).double())


@pytest.mark.parametrize("method", FOR_EVERY_CAPTIONER)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_of_regions_alone(case, method, regions):
    model, vocabulary = create(*case), Vocabulary(WORDS)
    caption = [4, 7, 5, 10]
    why = explain_one(model, vocabulary, regions, caption, method=method)
    assert [one.word for one in why] == [vocabulary.words[i] for i in caption]
    logits = model(regions, torch.tensor([[[1, 4, 7, 5]]])).logits[0, 0]
    for place, one in enumerate(why):
        assert one.place == place
        assert one.method == method
        assert one.total == pytest.approx(logits[place, caption[place]].item())
        assert one.regions.shape == (5,)
        assert len(one.boxes) == 5
        assert one.previous == ("<start>", *(vocabulary.words[i] for i in caption[:place]))
        assert one.words.shape == (place + 1,)
        assert one.heatmap is None
        assert one.picture is None
        # (Before a layer norm, the gradients of a word's vector add up to nothing.)
        if method in ("gradient_input", "lrp", "occlusion"):
            assert np.abs(one.words).sum() > 1e-6
        assert 0 <= one.image_share <= 1
    assert max(np.abs(one.regions).sum() for one in why) > 1e-6
    if method in ("lrp", "attn_lrp", "contrastive_lrp"):
        assert all(abs(one.remainder) < 1e-5 for one in why)


@pytest.mark.parametrize("method", FOR_EVERY_CAPTIONER)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_captions_of_several_pictures_are_each_explained_as_if_alone(case, method, regions):
    model, vocabulary = create(*case), Vocabulary(WORDS)
    torch.manual_seed(2)
    both = Regions(
        torch.cat([regions.vectors, torch.randn_like(regions.vectors)]),
        torch.cat([regions.mask, ~regions.mask.roll(2, 1) | regions.mask]),
        torch.cat([regions.boxes, regions.boxes.flip(1)]),
    )
    captions = [[4, 7, 5, 10], [9, 4]]
    together = explain_captions(model, vocabulary, both, captions, method=method)
    assert [len(own) for own in together] == [4, 2]
    for b, caption in enumerate(captions):
        alone = explain_one(model, vocabulary, both[b : b + 1], caption, method=method)
        for one, other in zip(together[b], alone, strict=True):
            assert_same(one, other, 1e-7)


def assert_same(one, other, tolerance):
    assert (one.word, one.place, one.previous) == (other.word, other.place, other.previous)
    assert one.boxes == other.boxes
    for name in ("total", "regions", "words", "bias", "epsilon", "encoder", "heatmap"):
        if getattr(other, name) is not None:
            np.testing.assert_allclose(
                getattr(one, name), getattr(other, name), rtol=0, atol=tolerance, err_msg=name
            )


def test_a_word_that_was_not_said_can_be_asked_for(regions):
    model, vocabulary = create("grid_td", 0), Vocabulary(WORDS)
    asked = [1, "word6", (1, "word2"), (3, "word0")]
    said, same, other, after = explain_one(model, vocabulary, regions, [4, 10, 5], asked)
    assert (said.place, said.word, said.total) == (same.place, same.word, same.total)
    assert (other.place, other.word) == (1, "word2")
    assert not np.allclose(other.regions, said.regions)
    assert len(after.words) == 4
    for asked, message in [
        ([7], "the caption has 3 words, and no position 7"),
        (["word4"], "the caption does not say 'word4'"),
        ([(0, "horse")], "does not know the word 'horse'"),
        ("some", "'all' or a list"),
    ]:
        with pytest.raises(ConfigError, match=message):
            explain_one(model, vocabulary, regions, [4, 10, 5], asked)
    with pytest.raises(ConfigError, match=r"no method is called 'lpr'; did you mean 'lrp'"):
        explain_one(model, vocabulary, regions, [4], method="lpr")
    with pytest.raises(ConfigError, match=r"lrp has no option 'epsilom'; did you mean 'epsilon'"):
        explain_one(model, vocabulary, regions, [4], epsilom=0.1)
    with pytest.raises(ConfigError, match=r"grad_cam has no option 'epsilon'; it has none"):
        explain_one(model, vocabulary, regions, [4], method="grad_cam", epsilon=0.1)
    assert explain_one(model, vocabulary, regions, [4], words=[]) == []


@pytest.fixture(scope="module")
def captioner(checkpoint):
    return sightline.load(checkpoint)


@pytest.mark.parametrize("method", FOR_EVERY_CAPTIONER)
def test_of_a_picture_at_its_own_size(method, captioner, examples):
    picture = Image.open(examples / "coffee.jpg").resize((90, 70))
    why = captioner.explain(picture, "a red cup", words=["cup"], method=method)[0]
    assert why.heatmap.shape == (70, 90)
    assert why.regions.shape == (16,)
    assert np.abs(why.heatmap).sum() > 0
    if method in ("attention", "grad_cam", "occlusion"):  # they stop at the regions
        assert why.heatmap.sum() == pytest.approx(why.image_relevance, rel=1e-3, abs=1e-5)
    if method == "lrp":
        assert abs(why.remainder) < 1e-4
        assert why.heatmap.sum() + why.encoder == pytest.approx(why.image_relevance, abs=1e-4)


@pytest.mark.parametrize("method", ["lrp", "guided_grad_cam", "occlusion"])
def test_several_pictures_together(method, captioner, examples, monkeypatch):
    monkeypatch.setattr("sightline.captioner.captioner.EXPLAINED_TOGETHER", 2)
    pictures = [
        Image.open(examples / "coffee.jpg").resize((90, 70)),
        Image.open(examples / "cat.jpg").resize((50, 60)),
        Image.open(examples / "cat.jpg").resize((40, 40)),
    ]
    captions = ["a red cup", "a cat", "a"]
    together = captioner.explain(pictures, captions, method=method)
    assert [len(own) for own in together] == [3, 2, 1]
    for picture, caption, own in zip(pictures, captions, together, strict=True):
        alone = captioner.explain(picture, caption, method=method)
        for one, other in zip(own, alone, strict=True):
            assert one.heatmap.shape == (picture.height, picture.width)
            assert_same(one, other, 1e-4)
    assert captioner.explain([], []) == []
    with pytest.raises(ConfigError, match="1 captions for 3 pictures"):
        captioner.explain(pictures, ["a cat"])


def test_what_the_encoder_absorbs_is_what_its_rules_count(captioner, examples):
    pixels = torch.from_numpy(captioner.encoder.preprocessing.load(examples / "cat.jpg")[0])[None]
    x, mode = captioner.encoder.normalise(pixels).requires_grad_(), LRPMode(1)
    with mode:
        grid = captioner.encoder.features(x)
    c = torch.rand_like(grid)
    onward, absorbed = torch.autograd.grad(grid, [x, mode.absorbed], c)
    entered, arrived = (c * grid).sum(), (onward * x).sum()
    assert abs(absorbed.sum()) > 1e-3 * entered
    torch.testing.assert_close(arrived + absorbed.sum(), entered, rtol=1e-4, atol=0)


def test_its_own_caption_is_explained_unless_one_is_given(captioner, examples):
    caption = captioner.caption(examples / "cat.jpg")
    for given in (None, caption, caption.text):
        why = captioner.explain(examples / "cat.jpg", given, method="attention")
        assert [one.word for one in why] == [word.text for word in caption.words]
    np.testing.assert_allclose(why[1].regions, caption.words[1].attention, atol=1e-6)


def test_an_ensemble_is_refused(checkpoint, examples):
    both = sightline.load(checkpoint, checkpoint)
    with pytest.raises(SightlineError, match="one by one"):
        both.explain(examples / "cat.jpg", "a cat")
