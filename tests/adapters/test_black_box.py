"""A captioner of an architecture that no family knows still captions, and its words are checked."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from PIL import Image

import sightline
from sightline.adapters.pixel_encoder import put_together
from sightline.adapters.tiny import PATCH, SIDE, tiny, tiny_tokenizer
from sightline.adapters.wrap import black_box, see_into
from sightline.captioner import Captioner
from sightline.captioner.loading import of_adapted
from sightline.cli.main import cli
from sightline.data.dataset import CaptionedImage
from sightline.errors import CheckpointError, ConfigError, NotApplicableError
from sightline.evaluation.evaluate import evaluate
from sightline.evaluation.support import fit_support
from sightline.regions import Regions
from sightline.text.vocabulary import START


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny VipLLaVA, which is no family of ours, as transformers saves it."""
    from transformers import (
        LlavaProcessor,
        VipLlavaConfig,
        VipLlavaForConditionalGeneration,
        ViTImageProcessorPil,
    )

    tokenizer = tiny_tokenizer()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 24}
    config = VipLlavaConfig(
        vision_config={
            **sizes,
            "model_type": "clip_vision_model",
            "image_size": SIDE,
            "patch_size": PATCH,
        },
        text_config={**sizes, "model_type": "llama", "vocab_size": len(tokenizer)},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layers=[-1, -2],
    )
    torch.manual_seed(0)
    model = VipLlavaForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    processor = LlavaProcessor(
        ViTImageProcessorPil(size={"height": SIDE, "width": SIDE}),
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        image_token="<image>",
        num_additional_image_tokens=1,
    )
    path = tmp_path_factory.mktemp("captioners") / "unknown"
    model.save_pretrained(path)
    processor.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def captioner(folder):
    captioner = sightline.load(f"hf:{folder}")
    captioner.options = captioner.options.changed({"beam": 2, "max_length": 4})
    return captioner


@pytest.fixture(scope="module")
def picture():
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 50, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    random, folder = np.random.default_rng(0), tmp_path_factory.mktemp("pictures")
    for n in range(32):
        pixels = random.integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{n}.png")
    captions = ("a dog runs", "two cats sit")
    return [CaptionedImage(str(n), folder / f"{n}.png", captions) for n in range(32)]


def test_it_captions_with_probabilities_and_alternatives(captioner, picture):
    caption = captioner.caption(picture)
    assert caption.words
    assert all(word.log_probability < 0 and word.alternatives for word in caption.words)
    read = captioner.read(picture, "a dog barks")
    assert [word.text for word in read.words] == ["a", "dog", "barks"]
    unsaid = captioner.counterfactual(picture, read, "cat", 1)
    assert unsaid.word.log_probability < 0


def test_its_probabilities_are_those_of_its_own_pass(captioner, picture):
    square = picture.resize((35, 35), Image.Resampling.BICUBIC, reducing_gap=3.0)
    made = captioner.model.processor(
        images=square, text=captioner.model.prompt, return_tensors="pt"
    )
    ids = [i - 4 for i in captioner.vocabulary.encode("a dog")]
    made["input_ids"] = torch.cat([made["input_ids"], torch.tensor([ids])], 1)
    made["attention_mask"] = torch.ones_like(made["input_ids"])
    with torch.no_grad():
        logits = captioner.model.model(**made).logits[0, -3:-1]
        ours = captioner.model(
            captioner.encode(picture).regions, torch.tensor([[[START, *(i + 4 for i in ids)]]])
        ).logits[0, 0, :2, 4:]
    said = ~captioner.model.banned[4:]
    torch.testing.assert_close(ours[:, said], logits[:, said])


@pytest.mark.parametrize("family", ["vision-encoder-decoder", "blip"])
def test_it_is_the_white_box_seen_from_outside(family):
    model, processor = tiny(family)
    outside = Captioner(*of_adapted(black_box(model, processor)))
    pixels = np.random.default_rng(1).integers(0, 255, (35, 35, 3), dtype=np.uint8)
    there = outside.read(pixels, "a dog barks")
    inside = Captioner(*of_adapted(see_into(model, processor))).read(pixels, "a dog barks")
    for one, other in zip(there.words, inside.words, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-3)


def test_hidden_cells_have_the_mean_colour_of_the_others(captioner, picture):
    regions = captioner.encode(picture).regions
    mask = regions.mask.clone()
    mask[:, 0] = False
    cell = captioner.model.cell
    shown = put_together(Regions(regions.vectors, mask, regions.boxes), cell)
    whole = put_together(regions, cell)
    assert shown[:, cell:].equal(whole[:, cell:])
    hidden = shown[0, :cell, :cell].reshape(-1, 3)
    assert len(hidden.unique(dim=0)) == 1
    seen = torch.ones_like(whole[0, ..., 0], dtype=torch.bool)
    seen[:cell, :cell] = False
    mean = whole[0][seen].float().mean(0)
    assert (hidden[0].float() - mean).abs().max() <= 0.5


def test_occlusion_explains_it_and_other_methods_say_why_not(captioner, picture):
    (why,) = captioner.explain(picture, "a dog", words=["dog"], method="occlusion")
    assert why.regions.shape == (49,)
    assert np.abs(why.regions).max() > 0
    for method in ("lrp", "contrastive_lrp", "grad_cam", "attention", "gradient_input"):
        with pytest.raises(NotApplicableError, match=r"does not see into .* 'vipllava'; occlusion"):
            captioner.explain(picture, "a dog", words=["dog"], method=method)


def test_its_page_shows_occlusion(captioner, picture):
    report = captioner.report(picture, caption="a dog", why_not=[("cat", 1)])
    assert report.methods == ("occlusion",)
    assert "Occlusion" in sightline.render_page(report)


def test_its_support_is_fitted_and_words_are_checked(folder, captioner, images, monkeypatch):
    flips = iter(range(10_000))
    monkeypatch.setattr(
        "sightline.support.fit.label_words", lambda said, _: [next(flips) % 2 == 0 for _ in said]
    )
    (report,) = fit_support(captioner, images)
    assert set(report.sample.names) == {
        *("occlusion", "blank", "other_picture", "log_probability", "agreement")
    }
    assert np.isfinite(report.sample.scores).all()
    assert np.ptp(report.sample.scores, axis=0).min() > 0
    given = [str(images[0].picture), "--model", f"hf:{folder}", "--check", "--json"]
    said = CliRunner().invoke(cli, ["caption", *given])
    assert said.exit_code == 0, said.output
    (row,) = json.loads(said.output)
    assert any(word["support"] for word in row["captions"][0]["words"])


def test_a_split_is_captioned_and_scored(captioner, images):
    made = evaluate(captioner, images[:2], ["bleu"])
    assert made.captions[0] == captioner.caption(images[0].picture).text


def test_the_laws_of_adapters_are_not_for_black_boxes(folder):
    judged = CliRunner().invoke(cli, ["check-plugin", f"hf:{folder}"])
    assert isinstance(judged.exception, NotApplicableError)
    assert "no law is of black boxes" in str(judged.exception)


def test_what_makes_no_text_of_pictures_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}')
    with pytest.raises(CheckpointError, match="'bert', which makes no text of pictures"):
        sightline.load(f"hf:{tmp_path}")
    with pytest.raises(ConfigError, match="is no captioner of transformers"):
        sightline.wrap(torch.nn.Linear(1, 1), tiny("blip")[1])
