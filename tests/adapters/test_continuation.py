"""Words go on from a key-value cache, in every family, and are those of the whole pass."""

import pytest
import torch

from sightline.adapters.tiny import TINY
from sightline.decoding.beam import BeamOptions, beam_search
from sightline.laws.adapters import AdapterCase, tiny_parts
from sightline.text.vocabulary import START

SEARCH = BeamOptions().changed({"beam": 3, "n_best": 3, "max_length": 5})


@pytest.fixture(scope="module", params=TINY)
def case(request):
    encoder, model, vocabulary = tiny_parts(request.param)
    return AdapterCase(encoder.float(), model.float(), vocabulary)


@pytest.fixture(scope="module")
def memory(case):
    with torch.no_grad():
        vectors = case.encoder.vectors(case.x.float())
    return {"image": vectors, "mask": torch.ones_like(vectors[..., 0], dtype=torch.bool)}


def test_a_search_finds_the_captions_of_whole_passes(case, memory, monkeypatch):
    cached = beam_search(case.model, memory, SEARCH)
    monkeypatch.setattr("sightline.adapters.model.cache_of", lambda state: None)
    whole = beam_search(case.model, memory, SEARCH)
    assert cached.tokens.equal(whole.tokens)
    torch.testing.assert_close(cached.log_probs, whole.log_probs, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_word_rests_on_the_cache_and_on_nothing_else(case, memory):
    start = torch.full((2, 1), START)
    first = case.model.step(start, case.model.start(memory), memory)
    word = first.logits.argmax(-1)
    runs = []
    hook = case.model.model.register_forward_pre_hook(
        lambda module, args, inputs: runs.append(inputs), with_kwargs=True
    )
    following = case.model.step(word, first.state, memory).logits
    hook.remove()
    for inputs in runs:  # (families whose language model goes on alone have none)
        ids = inputs.get("input_ids", inputs.get("decoder_input_ids"))
        assert ids.shape == (2, 1)
    other = {
        name: tensor.flip(-2) if name == "cache_0_1" else tensor
        for name, tensor in first.state.items()
    }
    said = other["said"]
    if first.state["cache_0_1"].shape[-2] == 1:  # one value cannot be reversed
        other["cache_0_1"] = 2 * first.state["cache_0_1"]
    assert said.shape[-1] == 1
    assert not torch.allclose(case.model.step(word, other, memory).logits, following)


def test_the_place_of_a_picture_is_never_said(case, memory):
    place = getattr(case.model.model.config, "image_token_id", None)
    if place is not None:
        whole = case.model.unroll(torch.full((2, 1, 1), START), memory)
        assert whole.logits.softmax(-1)[..., place + 4].max() == 0
