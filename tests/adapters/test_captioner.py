"""A captioner of transformers does what one of ours does."""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from PIL import Image

import sightline
from sightline.adapters.tiny import tiny, tiny_tokenizer
from sightline.adapters.vocabulary import PieceVocabulary
from sightline.cli.main import cli
from sightline.errors import CheckpointError, ConfigError


@pytest.fixture(scope="module")
def picture():
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 50, 3), dtype=np.uint8))


@pytest.fixture(scope="module", params=["vision-encoder-decoder", "llava", "idefics3"])
def captioner(request):
    return sightline.wrap(*tiny(request.param))


def test_a_words_probability_is_the_product_of_its_pieces(captioner, picture):
    read = captioner.read(picture, "a dog barks")
    assert [word.text for word in read.words] == ["a", "dog", "barks"]
    assert [len(word.ids) for word in read.words] == [1, 1, 5]
    ids = captioner.vocabulary.encode("a dog barks")
    tokens = torch.tensor([[[1, *ids]]])
    with torch.no_grad():
        logits = captioner.model(captioner.encode(picture).regions, tokens).logits
    pieces = logits.log_softmax(-1)[0, 0, range(len(ids)), ids]
    assert read.words[2].log_probability == pytest.approx(float(pieces[2:].sum()), rel=1e-5)
    everything = sum(word.log_probability for word in read.words)
    assert read.log_probability < everything  # the end has its share


def test_its_own_captions_come_from_the_search_of_ours(captioner, picture):
    best = captioner.captions([picture], beam=3, n_best=2, max_length=4)[0]
    assert best[0].score >= best[1].score
    again = captioner.caption(picture, beam=3, max_length=4)
    assert again.text == best[0].text
    assert captioner.vocabulary.decode([i for w in again.words for i in w.ids]) == again.text


def test_several_threads_may_caption_at_once(captioner):
    random = np.random.default_rng(1)
    pictures = [random.integers(0, 255, (40, 50, 3), dtype=np.uint8) for _ in range(8)]

    def caption(picture):
        said = captioner.caption(picture, beam=2, max_length=4)
        return said.text, round(said.log_probability, 3)

    alone, interval = [caption(picture) for picture in pictures], sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(caption, pictures)) == alone
    finally:
        sys.setswitchinterval(interval)


def test_batches_of_a_collection_take_turns_and_have_all_threads(captioner, tmp_path, monkeypatch):
    """On one thread each, they would wait for each other on one core."""
    for n in range(3):
        Image.new("RGB", (20, 20), (80 * n, 0, 0)).save(tmp_path / f"{n}.png")
    seen, original, all_threads = [], captioner.captions, torch.get_num_threads()

    def captions(*given, **options):
        seen.append((threading.current_thread(), torch.get_num_threads()))
        return original(*given, **options)

    monkeypatch.setattr(captioner, "captions", captions)
    torch.set_num_threads(2)
    try:
        output = tmp_path / "out.jsonl"
        options = {"beam": 1, "max_length": 3}
        sightline.caption_all(tmp_path, output, captioner=captioner, batch_size=1, **options)
    finally:
        torch.set_num_threads(all_threads)
    assert seen == [(threading.current_thread(), 2)] * 3


def test_weights_of_16_bits_are_captioned_in_bulk(picture, tmp_path):
    model, processor = tiny("vision-encoder-decoder")
    captioner = sightline.wrap(model.to(torch.bfloat16), processor)
    picture.save(tmp_path / "a.png")
    output = tmp_path / "captions.jsonl"
    summary = sightline.caption_all(tmp_path / "a.png", output, captioner=captioner, max_length=4)
    assert summary.captioned == 1


def test_greedy_captions_are_those_of_transformers(picture):
    model, (image_processor, tokenizer) = tiny("vision-encoder-decoder")
    captioner = sightline.wrap(model, (image_processor, tokenizer))
    ours = captioner.caption(picture, beam=1, max_length=6)
    pixels = image_processor(images=picture, return_tensors="pt")["pixel_values"]
    theirs = model.generate(
        pixels, num_beams=1, do_sample=False, max_new_tokens=6, min_new_tokens=1
    )
    said = tokenizer.decode(theirs[0], skip_special_tokens=True)
    assert ours.text == said.strip()


def test_a_words_relevance_is_the_sum_of_its_pieces(captioner, picture):
    whole = captioner.explain(picture, "a dog barks")
    assert [why.word for why in whole] == ["a", "dog", "barks"]
    assert all(abs(why.remainder) < 1e-4 for why in whole)
    assert whole[2].previous == ("<start>", "a", "dog")
    assert whole[2].heatmap.shape == (40, 50)
    assert whole[2].heatmap.sum() == pytest.approx(whole[2].image_relevance, abs=1e-4)


@pytest.mark.parametrize(
    "method",
    ["attn_lrp", "grad_cam", "gradient_rollout", "attention", "occlusion", "gradient_input"],
)
def test_every_kind_of_method_explains_it(captioner, picture, method):
    (why,) = captioner.explain(picture, "a dog", words=["dog"], method=method)
    assert np.abs(why.regions).max() > 0


def test_relevance_goes_on_to_the_pixels_on_request(captioner, picture):
    (coarse,) = captioner.explain(picture, "a dog", words=["dog"])
    (fine,) = captioner.explain(picture, "a dog", words=["dog"], pixels=True)
    assert np.allclose(coarse.regions, fine.regions)
    assert len(np.unique(fine.heatmap)) > 4 * len(np.unique(coarse.heatmap))


def test_why_not_takes_words_of_several_pieces(captioner, picture):
    caption = captioner.read(picture, "a dog barks")
    unsaid = captioner.counterfactual(picture, caption, "zebra", 1)
    pieces = captioner.read(picture, "a zebra").words[1]
    assert unsaid.word.log_probability == pytest.approx(pieces.log_probability, rel=1e-5)
    (why,) = captioner.explain(picture, caption, words=[(1, "zebra")])
    assert (why.word, why.place, why.previous) == ("zebra", 1, ("<start>", "a"))
    assert abs(why.remainder) < 1e-4


def test_a_page_is_made_of_it(captioner, picture):
    report = captioner.report(picture, caption="a dog barks", methods=["lrp"], why_not=[("cat", 1)])
    assert "barks" in sightline.render_page(report)


def test_words_of_several_pieces_cannot_be_required(captioner, picture):
    caption = captioner.caption(picture, require=["dog"], beam=2, max_length=4)
    assert "dog" in [word.text for word in caption.words]
    with pytest.raises(ConfigError, match="'zebra' has several pieces"):
        captioner.caption(picture, require=["zebra"])


def test_commands_take_a_folder(folder, picture, tmp_path):
    picture.save(tmp_path / "picture.png")
    given = [str(tmp_path / "picture.png"), "--model", f"hf:{folder}"]
    said = CliRunner().invoke(cli, ["caption", *given, "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.output)
    asked = ["--caption", "a dog barks", "--method", "lrp", "-o", str(tmp_path / "why.json")]
    why = CliRunner().invoke(cli, ["explain", *given, *asked])
    assert why.exit_code == 0, why.output
    assert "barks" in (tmp_path / "why.json").read_text()


def test_what_cannot_be_loaded_is_one_line(folder, tmp_path):
    with pytest.raises(CheckpointError, match="there is no such folder"):
        sightline.load("hf:./nowhere")
    with pytest.raises(ConfigError, match="only captioners of Sightline make an ensemble"):
        sightline.load(f"hf:{folder}", f"hf:{folder}")
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text('{"model_type": "bert", "architectures": ["BertModel"]}')
    with pytest.raises(CheckpointError, match="a model of the type 'bert'"):
        sightline.load(f"hf:{other}")
    (other / "config.json").write_text("{")
    with pytest.raises(CheckpointError):
        sightline.load(f"hf:{other}")


def test_remote_code_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(
        '{"model_type": "mine", "auto_map": {"AutoConfig": "mine.Mine"}}'
    )
    (tmp_path / "mine.py").write_text("raise SystemExit('it was run')")
    with pytest.raises(CheckpointError, match="brings Python code of its own"):
        sightline.load(f"hf:{tmp_path}")


def test_punctuation_and_capitals():
    vocabulary = PieceVocabulary(tiny_tokenizer(), 200, 2, space_first=False)
    ids = vocabulary.encode("A dog, two cats.")
    assert vocabulary.decode(ids) == "A dog, two cats."
    spans = vocabulary.spans(ids)
    assert [span.text for span in spans] == ["a", "dog", ",", "two", "cats", "."]
    assert [n for span in spans for n in range(span.start, span.stop)] == list(range(len(ids)))
    assert "dog" in vocabulary
    assert "dög" not in vocabulary


def test_weights_that_are_no_numbers_are_one_line(picture):
    model, processor = tiny("blip")
    with torch.no_grad():
        next(model.text_decoder.parameters()).fill_(torch.nan)
    with pytest.raises(CheckpointError, match="probabilities are not numbers"):
        sightline.wrap(model, processor).caption(picture)
