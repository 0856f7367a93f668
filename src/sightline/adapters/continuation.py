"""How families go on by one word from what they computed of the words before: key-value caches.

A cache of transformers becomes tensors of a state, which a beam reorders, and back. What each
family then takes differs; the pictures are in the cache already, and are not looked at again.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from sightline.models.interface import State

GoesOn = Callable[[Any, Tensor, Any, Tensor, int], Any]
"""The output for one more word id `(rows, 1)`, of a model, its cache, the image tokens of each row
and how many ids came before."""

_PREFIX = "cache"


def state_of(cache: Any, shape: Sequence[int]) -> State:
    """The tensors of a cache, with its rows as `(B, K)`; none of a cache that is not there."""
    return {
        f"{_PREFIX}_{layer}_{part}": torch.unflatten(tensor, 0, tuple(shape))
        for layer, tensors in enumerate(cache or ())
        for part, tensor in enumerate(each for each in tensors if each is not None)
    }


def cache_of(state: State) -> Any:
    """The cache that a state holds, or None."""
    from transformers import DynamicCache, EncoderDecoderCache

    layers: dict[str, list[Tensor]] = {}
    for name, tensor in state.items():
        if name.startswith(_PREFIX):
            layers.setdefault(name.split("_")[1], []).append(tensor.flatten(0, 1))
    if not layers:
        return None
    rows = [tuple(tensors) for tensors in layers.values()]
    of_words = DynamicCache([layer[:2] for layer in rows])
    if len(rows[0]) == 2:
        return of_words
    return EncoderDecoderCache(of_words, DynamicCache([layer[2:] for layer in rows]))


def go_on(model: Any, ids: Tensor, cache: Any, image: Tensor, before: int) -> Any:
    """Most families: words alone."""
    return model(input_ids=ids, past_key_values=cache, use_cache=True)


def go_on_numbered(model: Any, ids: Tensor, cache: Any, image: Tensor, before: int) -> Any:
    """GIT numbers words from the first of them, and would count the image tokens in its cache."""
    positions = torch.full_like(ids, before)
    return model(input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True)


def go_on_in_three(model: Any, ids: Tensor, cache: Any, image: Tensor, before: int) -> Any:
    """Qwen2-VL numbers image tokens by row and column, so that words have lower numbers."""
    position = before + model.model.rope_deltas.flatten()[0]
    positions = position.expand(3, *ids.shape)
    return model(input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True)


def go_on_within(part: str) -> GoesOn:
    """A language model within the captioner has seen everything."""

    def go(model: Any, ids: Tensor, cache: Any, image: Tensor, before: int) -> Any:
        return go_on(model.get_submodule(part), ids, cache, image, before)

    return go


def go_on_looking(model: Any, ids: Tensor, cache: Any, image: Tensor, before: int) -> Any:
    """BLIP's decoder is shown the picture at each word."""
    return model.text_decoder(
        input_ids=ids, encoder_hidden_states=image, past_key_values=cache, use_cache=True
    )


def go_on_decoding(model: Any, ids: Tensor, cache: Any, image: Tensor, before: int) -> Any:
    """A decoder of its own; what it looks at is in the cache, but must have a shape."""
    from transformers.modeling_outputs import BaseModelOutput

    return model(
        decoder_input_ids=ids,
        encoder_outputs=BaseModelOutput(last_hidden_state=image),
        past_key_values=cache,
        use_cache=True,
    )
