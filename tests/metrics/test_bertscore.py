import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from sightline.errors import DataError, MissingExtraError, WeightsError
from sightline.metrics import token_vectors
from sightline.metrics.bertscore import BertScore, bertscore
from sightline.metrics.token_vectors import caption_encoder, default_folder

CANDIDATES = [
    "a dog runs",
    "two men ride old bicycles down a very long and winding road",
    "a cat",
    "a dog runs",
]
REFERENCES = [
    ["the dog is running", "a puppy plays outside in the green grass"],
    ["people on bikes", "two men ride bicycles", "a road"],
    ["a cat sleeps on a very unaffordable sofa"],
    ["a dog runs"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small untrained BERT with words enough for these captions."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    path = tmp_path_factory.mktemp("models") / "tiny-bert"
    path.mkdir()
    captions = [*CANDIDATES, *(text for texts in REFERENCES for text in texts)]
    words = sorted({word for text in captions for word in text.split()} - {"unaffordable"})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##afford", "##able", *words]
    (path / "vocab.txt").write_text("\n".join(pieces))
    BertTokenizerFast(vocab=str(path / "vocab.txt")).save_pretrained(path)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=24,
    )
    BertModel(config).save_pretrained(path)
    return path


def slow(folder, candidate, reference, layer, idf=None):
    """The definition, one pair and one token at a time."""
    encoder = caption_encoder(folder.resolve())

    def tokens(text):
        ids, marks = encoder.tokens([text])
        states = encoder._model(input_ids=torch.tensor(ids), output_hidden_states=True)
        vectors = states.hidden_states[layer][0].detach().double().numpy()
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return [
            (vector, 0.0 if mark else 1.0 if idf is None else idf[token])
            for vector, token, mark in zip(vectors, ids[0], marks[0], strict=True)
        ]

    def match(ours, theirs):
        best = [max(float(vector @ other) for other, _ in theirs) for vector, _ in ours]
        weights = [weight for _, weight in ours]
        return sum(b * w for b, w in zip(best, weights, strict=True)) / sum(weights)

    said, meant = tokens(candidate), tokens(reference)
    precision, recall = match(said, meant), match(meant, said)
    return precision, recall, 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("layer", [0, 2, 3])
def test_agrees_with_the_definition(folder, layer):
    scores = bertscore(CANDIDATES, REFERENCES, model=folder, layer=layer)
    expected = [
        np.max([slow(folder, candidate, text, layer) for text in texts], axis=0)
        for candidate, texts in zip(CANDIDATES, REFERENCES, strict=True)
    ]
    actual = np.stack([score.per_image for score in scores], axis=1)
    np.testing.assert_allclose(actual, expected, atol=2e-6)
    np.testing.assert_allclose([s.corpus for s in scores], np.mean(expected, axis=0), atol=2e-6)


def test_idf_weighs_tokens_by_the_references_they_are_in(folder):
    encoder = caption_encoder(folder.resolve())
    ids, _ = encoder.tokens([text for texts in REFERENCES for text in texts])
    count = len(ids)
    idf = {
        token: math.log((count + 1) / (1 + sum(token in caption for caption in ids)))
        for token in range(encoder.vocabulary)
    }
    scores = bertscore(CANDIDATES, REFERENCES, model=folder, idf=True)
    expected = [
        np.max([slow(folder, candidate, text, 3, idf) for text in texts], axis=0)
        for candidate, texts in zip(CANDIDATES, REFERENCES, strict=True)
    ]
    actual = np.stack([score.per_image for score in scores], axis=1)
    np.testing.assert_allclose(actual, expected, atol=2e-6)
    plain = bertscore(CANDIDATES, REFERENCES, model=folder)[0]
    assert not np.allclose(scores[0].per_image, plain.per_image)


def test_identical_captions_score_one(folder):
    for score in bertscore(CANDIDATES, [[text] for text in CANDIDATES], model=folder, idf=True):
        np.testing.assert_allclose(score.per_image, 1.0, atol=1e-6)


def test_precision_and_recall_swap_with_the_captions(folder):
    others = [texts[0] for texts in REFERENCES]
    p, r, f = bertscore(CANDIDATES, [[text] for text in others], model=folder)
    swapped = bertscore(others, [[text] for text in CANDIDATES], model=folder)
    np.testing.assert_allclose(swapped[0].per_image, r.per_image, atol=1e-6)
    np.testing.assert_allclose(swapped[1].per_image, p.per_image, atol=1e-6)
    np.testing.assert_allclose(swapped[2].per_image, f.per_image, atol=1e-6)
    assert not np.allclose(p.per_image, r.per_image)


def test_neither_batching_nor_padding_changes_anything(folder, monkeypatch):
    together = bertscore(CANDIDATES, REFERENCES, model=folder)
    for candidate, texts, value in zip(CANDIDATES, REFERENCES, together[2].per_image, strict=True):
        alone = bertscore([candidate], [texts], model=folder)[2].corpus
        assert alone == pytest.approx(value, abs=1e-6)
    monkeypatch.setattr(token_vectors, "_CAPTIONS_AT_ONCE", 2)
    module = sys.modules["sightline.metrics.bertscore"]  # the package has the function so
    monkeypatch.setattr(module, "_PICTURES_AT_ONCE", 3)
    small = bertscore(CANDIDATES, REFERENCES, model=folder)
    np.testing.assert_allclose(small[2].per_image, together[2].per_image, atol=1e-6)


def test_an_empty_caption_scores_nothing(folder):
    for score in bertscore(["", "a dog"], [["a dog"], [""]], model=folder):
        np.testing.assert_array_equal(score.per_image, [0.0, 0.0])


def test_captions_beyond_the_models_length_are_cut(folder):
    f = bertscore(["a dog " * 40], [["a dog " * 11]], model=folder)[2]
    assert f.corpus == pytest.approx(1.0, abs=1e-6)


def test_names_carry_model_layer_and_weighting(folder):
    names = [score.name for score in bertscore(["a"], [["a"]], model=folder, layer=2, idf=True)]
    assert names == [f"BERTScore-{part} (tiny-bert L2 idf)" for part in "PRF"]


def test_the_default_model_prefers_the_right_caption():
    right, wrong = "a dog runs through the grass", "a plate of food on a table"
    f = bertscore([right, wrong], [["a puppy is running on a lawn"]] * 2)[2]
    assert f.name == "BERTScore-F (all-MiniLM-L6-v2 L6)"
    assert f.per_image[0] > f.per_image[1] + 0.2


def test_says_what_is_wrong_with_a_model_folder(folder, tmp_path):
    with pytest.raises(WeightsError, match="it has no config"):
        bertscore(["a"], [["a"]], model=tmp_path)
    with pytest.raises(WeightsError, match="layers 0 to 3"):
        bertscore(["a"], [["a"]], model=folder, layer=9)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "no-such-model"}))
    with pytest.raises(WeightsError, match="cannot load the model") as caught:
        bertscore(["a"], [["a"]], model=tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError):
        bertscore(["a"], [[]], model=folder)


def test_pickled_weights_are_never_read(folder, tmp_path):
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    torch.save(
        {"embeddings.word_embeddings.weight": torch.zeros(2)}, tmp_path / "pytorch_model.bin"
    )
    with pytest.raises(WeightsError, match="cannot load the model"):
        bertscore(["a"], [["a"]], model=tmp_path)


def test_says_which_extra_is_missing(folder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"sightline\[bertscore\]"):
        default_folder()
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "transformers", None)
    caption_encoder.cache_clear()
    with pytest.raises(MissingExtraError, match=r"sightline\[bertscore\]"):
        bertscore(["a"], [["a"]], model=folder)


def test_importing_the_metrics_imports_no_heavy_library():
    modules = ["bertscore", "chair", "spice.official", "spice.spacy_parser"]
    code = "; ".join(f"import sightline.metrics.{name}" for name in modules)
    check = "import sys; assert not {'torch', 'spacy', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"{code}; {check}"], check=True)


def test_batches_add_up(folder):
    metric = BertScore(folder, idf=True)
    for start in (0, 1):
        metric.add(CANDIDATES[start::2], REFERENCES[start::2])
    whole = bertscore(CANDIDATES, REFERENCES, model=folder, idf=True)
    for part, score in zip(metric.scores(), whole, strict=True):
        assert part.corpus == pytest.approx(score.corpus, abs=1e-6)
    with pytest.raises(DataError, match="nothing to score"):
        BertScore(folder).scores()
