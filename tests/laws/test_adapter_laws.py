"""The laws of adapted captioners hold of every family, and each is broken by what breaks it."""

import dataclasses

import pytest
import torch

from sightline.adapters.families import FAMILIES
from sightline.adapters.tiny import TINY
from sightline.laws.adapters import ADAPTER_LAWS, check_adapter, tiny_parts


@pytest.mark.parametrize("family", TINY)
def test_the_laws_hold_of_every_family(family):
    broken = [v for v in check_adapter(family, tiny_parts(family)) if not v.holds]
    assert [(verdict.law, verdict.why) for verdict in broken] == []


def test_every_family_has_a_tiny_captioner():
    same = {"qwen2_5_vl"}  # takes its pictures as Qwen2-VL does
    assert set(FAMILIES) - set(TINY) <= same


def broken_by(change):
    encoder, model, vocabulary = tiny_parts("blip")
    change(encoder, model, vocabulary)
    verdicts = check_adapter("blip", (encoder, model, vocabulary))
    return {verdict.law for verdict in verdicts if not verdict.holds}


def test_a_forward_pass_that_is_changed_breaks_a_law():
    def change(encoder, model, vocabulary):
        unroll = model.unroll

        def other(tokens, memory):
            unrolled = unroll(tokens, memory)
            return unrolled._replace(logits=unrolled.logits * 1.001)

        model.unroll = other

    assert "the captioner's own forward pass is unchanged" in broken_by(change)


def test_attention_that_is_no_distribution_breaks_a_law():
    def change(encoder, model, vocabulary):
        unroll = model.unroll
        model.unroll = lambda *args: unroll(*args)._replace(attention=2 * unroll(*args).attention)

    assert broken_by(change) == {
        "attention is a distribution over the image tokens",
        "the teacher-forced pass equals the loop of step",
    }


def test_words_that_lose_a_piece_break_a_law():
    def change(encoder, model, vocabulary):
        spans = vocabulary.spans
        vocabulary.spans = lambda ids: spans(ids)[:-1]

    assert broken_by(change) == {
        "words of pieces: every piece is of one word, and their texts make up the caption"
    }


def test_image_tokens_of_the_wrong_module_break_a_law():
    def change(encoder, model, vocabulary):
        shown = dataclasses.replace(model.family, image_tokens="vision_model.encoder.forward")
        model.family = shown  # whose outcome is normalised once more

    assert "the captioner's own forward pass is unchanged" in broken_by(change)


def test_there_is_a_law_for_each_promise():
    assert len(ADAPTER_LAWS) == 11
    assert torch.get_default_dtype() == torch.float32


def test_a_cache_that_is_mixed_up_breaks_a_law(monkeypatch):
    from sightline.adapters import model

    def mixed_up(state):
        cache = cache_of(state)
        for layer in cache.self_attention_cache.layers if cache else ():
            layer.values = 2 * layer.values
        return cache

    cache_of = model.cache_of
    monkeypatch.setattr(model, "cache_of", mixed_up)
    assert broken_by(lambda *parts: None) == {"the teacher-forced pass equals the loop of step"}
