"""From a checkpoint to captions: the Python way in, and what comes out."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import sightline
from sightline.captioner import Captioner
from sightline.captions import Caption, spread
from sightline.checkpoint import load_config, save_checkpoint
from sightline.errors import CheckpointError, ConfigError, PictureError
from sightline.models.registry import create_model


@pytest.fixture(scope="module")
def captioner(checkpoint: Path) -> Captioner:
    return sightline.load(checkpoint)


def test_one_picture_or_many_in_any_form(captioner: Captioner, examples: Path) -> None:
    path = examples / "cat.jpg"
    one = captioner.caption(path)
    assert isinstance(one, Caption)
    assert str(one) == one.text == " ".join(word.text for word in one.words)
    many = captioner.caption([str(path), path.read_bytes(), examples / "coffee.jpg"])
    assert [caption.text for caption in many[:2]] == [one.text, one.text]
    assert captioner.captions([]) == []


def test_every_word_is_accounted_for(captioner: Captioner, examples: Path) -> None:
    caption = captioner.caption(examples / "cat.jpg", alternatives=4)
    assert len(caption.boxes) == 16
    assert caption.log_probability < sum(word.log_probability for word in caption.words) + 1e-4
    for word in caption.words:
        assert len(word.attention) == 16
        assert sum(word.attention) == pytest.approx(1, abs=1e-4)
        assert 3 <= len(word.alternatives) <= 4
        assert word.text not in dict(word.alternatives)
        assert 0 < word.signals["beta"] < 1
    length = len(caption.words) + 1
    assert caption.score == pytest.approx(caption.log_probability / length**0.5, rel=1e-4)


def test_it_works_where_the_caller_has_switched_gradients_off(
    fitted_checkpoint: Path, examples: Path
) -> None:
    captioner, picture = sightline.load(fitted_checkpoint), examples / "cat.jpg"
    caption = captioner.caption(picture, check=True)
    (why, *_) = captioner.explain(picture, caption)
    with torch.inference_mode():
        encoded = captioner.encode(picture)
        again = captioner.caption(picture, check=True)
        assert captioner.check(encoded, again) == again == caption
        (why_again, *_) = captioner.explain(encoded, caption)
    assert np.array_equal(why_again.heatmap, why.heatmap)
    assert captioner.explain(encoded, caption)[0].word == why.word  # encoded there, explained here


def test_a_check_wants_one_caption_for_each_picture(
    fitted_checkpoint: Path, examples: Path
) -> None:
    captioner, picture = sightline.load(fitted_checkpoint), examples / "cat.jpg"
    caption = captioner.caption(picture)
    for captions in ([], [caption, caption]):
        with pytest.raises(ConfigError, match=rf"check: {len(captions)} captions for 1 pictures"):
            captioner.check([picture], captions)


def test_without_details_captions_are_the_same(
    captioner: Captioner, examples: Path, monkeypatch
) -> None:
    pictures = captioner.encode([examples / "cat.jpg", examples / "coffee.jpg"])
    whole = captioner.captions(pictures, n_best=2)
    monkeypatch.setattr(type(captioner.model), "unroll", None)  # no pass but the search
    for rich, plain in zip(
        whole, captioner.captions(pictures, n_best=2, details=False), strict=True
    ):
        assert [c.text for c in plain] == [c.text for c in rich]
        for word, described in zip(plain[0].words, rich[0].words, strict=True):
            assert word.log_probability == pytest.approx(described.log_probability, abs=1e-5)
            assert (word.alternatives, word.attention, word.signals) == ((), (), {})
            assert word.ids == described.ids
        assert (plain[0].boxes, len(plain)) == ((), len(rich))
        assert plain[0].log_probability == rich[0].log_probability


def test_a_caption_is_plain_json_and_the_same_after_loading_again(
    captioner: Captioner, checkpoint: Path, examples: Path
) -> None:
    caption = captioner.caption(examples / "cat.jpg")
    text = json.dumps(caption.to_json())
    again = sightline.load(checkpoint).caption(examples / "cat.jpg")
    assert json.dumps(again.to_json()) == text
    assert json.loads(text)["words"][0]["text"] == caption.words[0].text


def test_a_caption_of_another_captioner_keeps_its_words(
    captioner: Captioner, save_captioner, tmp_path: Path, examples: Path
) -> None:
    words = tuple(captioner.vocabulary.to_json()[::-1])
    other = sightline.load(save_captioner(tmp_path / "other", words=words))
    caption = captioner.caption(examples / "cat.jpg")
    explained = other.explain(examples / "cat.jpg", caption, method="attention")
    assert [why.word for why in explained] == [word.text for word in caption.words]


def test_options_reach_the_search(captioner: Captioner, examples: Path) -> None:
    picture = examples / "coffee.jpg"
    best = captioner.captions([picture], n_best=6)[0]
    assert len({caption.text for caption in best}) == 6  # more than the four beams of its defaults
    assert [c.score for c in best] == sorted((c.score for c in best), reverse=True)
    word = best[0].words[0].text
    without = captioner.caption(picture, avoid=[word])
    assert word not in [other.text for other in without.words]
    known = captioner.vocabulary.to_json()
    absent = next(word for word in known if word not in best[0].text.split())
    assert absent in captioner.caption(picture, require=[absent]).text.split()
    assert len(captioner.caption(picture, max_length=2).words) <= 2
    # Ten captions of one word are all there are.
    few = captioner.captions([picture], n_best=15, max_length=1)[0]
    assert sorted(caption.text for caption in few) == sorted(known)
    with pytest.raises(ConfigError, match="no caption meets these constraints"):
        captioner.caption(picture, avoid=known)
    with pytest.raises(ConfigError, match="no decoding option is called 'beems'"):
        captioner.caption(picture, beems=3)
    with pytest.raises(ConfigError, match="does not know the word 'zebra'"):
        captioner.caption(picture, require=["zebra"])


def test_a_caption_of_somebody_else_is_read_as_its_own(
    captioner: Captioner, examples: Path
) -> None:
    own = captioner.caption(examples / "cat.jpg")
    read = captioner.read(examples / "cat.jpg", own.text.capitalize() + ".")
    assert read.text == own.text
    assert read.log_probability == pytest.approx(own.log_probability, abs=1e-4)
    assert read.score == pytest.approx(own.score, abs=1e-4)
    for one, other in zip(read.words, own.words, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
        assert [word for word, _ in one.alternatives] == [word for word, _ in other.alternatives]
    with pytest.raises(ConfigError, match="has no words"):
        captioner.read(examples / "cat.jpg", " . ")


def test_a_word_that_is_not_said_is_asked_for_where_it_is_likeliest(
    captioner: Captioner, examples: Path
) -> None:
    picture = examples / "cat.jpg"
    caption = captioner.read(picture, "a red cup")
    found = captioner.counterfactual(picture, caption, "cat")
    said = [
        captioner.read(picture, text).words[-1].log_probability
        for text in ("cat", "a cat", "a red cat", "a red cup cat")
    ]
    assert found.everywhere == pytest.approx(said, abs=1e-4)
    assert found.place == int(np.argmax(said))
    assert found.word.text == "cat"
    assert found.word.log_probability == found.everywhere[found.place]
    there = captioner.counterfactual(picture, caption, "cat", 1)
    assert there.place == 1
    assert there.word.log_probability == found.everywhere[1]
    # "red" at another place than its own may be asked for.
    assert captioner.counterfactual(picture, caption, "red", 3).place == 3


def test_a_picture_that_cannot_be_read_says_so(captioner: Captioner, tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    with pytest.raises(PictureError, match=r"empty\.jpg is empty"):
        captioner.caption(tmp_path / "empty.jpg")


def test_an_ensemble_averages_and_checks_what_can_be_averaged(
    checkpoint: Path, captioner: Captioner, save_captioner, examples: Path, tmp_path: Path
) -> None:
    picture = examples / "cat.jpg"
    twice = sightline.load(checkpoint, checkpoint).caption(picture)
    alone = captioner.caption(picture)
    assert twice.text == alone.text
    assert twice.log_probability == pytest.approx(alone.log_probability, abs=1e-4)
    other = save_captioner(tmp_path / "other", seed=1)
    both = sightline.load(checkpoint, other).caption(picture)
    assert both.log_probability != pytest.approx(alone.log_probability, abs=1e-3)
    foreign = save_captioner(tmp_path / "foreign", words=("un", "chat"))
    with pytest.raises(ConfigError, match="another vocabulary"):
        sightline.load(checkpoint, foreign)


def test_the_figure_has_a_panel_per_word(
    captioner: Captioner, examples: Path, tmp_path: Path
) -> None:
    from sightline.report.attention_figure import draw_attention

    caption = captioner.caption(examples / "cat.jpg")
    titles = [axes.get_title() for axes in draw_attention(caption).axes]
    assert [title.split()[0] for title in titles if title] == [w.text for w in caption.words]
    caption.plot(tmp_path / "cat.png")
    assert Image.open(tmp_path / "cat.png").width > 400
    with pytest.raises(ConfigError, match=r"must end in \.png, \.pdf or \.svg"):
        caption.plot(tmp_path / "cat.jpeg")


def test_attention_is_spread_over_the_boxes_it_belongs_to() -> None:
    boxes = [(0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 1.0, 1.0), (0.0, 0.0, 1.0, 1.0)]
    density = spread([0.5, 0.3, 0.2], boxes, 40, 60)
    assert density.mean() == pytest.approx(1.0)
    assert density[0, 0] == pytest.approx(0.5 / 0.25 + 0.2)
    assert density[-1, -1] == pytest.approx(0.3 / 0.25 + 0.2)
    assert density[0, -1] == pytest.approx(0.2)
    assert np.isclose(density[:20, :30].mean() / 4 + 0.75 * 0.2, 0.5 + 0.2, atol=1e-6)


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda folder: (folder / "config.json").unlink(), "has no checkpoint in it"),
        (lambda folder: (folder / "config.json").write_text("{"), "not JSON"),
        (lambda folder: (folder / "config.json").write_text('{"format": 9}'), "format 9"),
        (lambda folder: (folder / "config.json").write_text('{"format": 1}'), "'model' is missing"),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(b"x"),
            "does not hold",
        ),
        (lambda folder: (folder / "model.safetensors").unlink(), "does not hold"),
    ],
)
def test_a_damaged_checkpoint_is_one_clear_line(
    save_captioner, tmp_path: Path, break_it, says: str
) -> None:
    folder = save_captioner(tmp_path / "checkpoint")
    break_it(folder)
    with pytest.raises(CheckpointError, match=says) as caught:
        sightline.load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("decoding", "says"),
    [
        ({"beam": "wide"}, r"config\.json: decoding\.beam: must be"),
        ({"no_repeat_ngram": "often"}, r"decoding\.constraints\.no_repeat_ngram: must be"),
        ({"beem": 3}, "no decoding option is called 'beem'; did you mean 'beam'"),
        (5, r"config\.json: decoding: must be a group of keys"),
    ],
)
def test_a_checkpoint_that_searches_in_no_known_way_is_refused(
    save_captioner, tmp_path: Path, decoding: object, says: str
) -> None:
    folder = save_captioner(tmp_path / "checkpoint")
    config = load_config(folder) | {"decoding": decoding}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises((ConfigError, CheckpointError), match=says):
        sightline.load(folder)


def test_a_checkpoint_is_written_whole_or_not_at_all(save_captioner, tmp_path: Path) -> None:
    folder = save_captioner(tmp_path / "checkpoint")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    model = create_model("soft_attention", 14, 112)
    with pytest.raises(TypeError):
        save_checkpoint(folder, model, {"unwritable": object()}, "card")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
    assert load_config(folder)["decoding"]["beam"] == 4
