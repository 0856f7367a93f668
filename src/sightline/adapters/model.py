"""A transformers captioner as a `CaptionModel`: its own forward pass, told what it sees."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sightline.adapters.continuation import cache_of, state_of
from sightline.adapters.family import ONE_AT_A_TIME, Family, resolve
from sightline.adapters.piece_ids import PieceIds
from sightline.errors import NotApplicableError
from sightline.models.interface import (
    CaptionModel,
    Memory,
    State,
    Step,
    TextSequence,
    Unrolled,
)
from sightline.regions import Regions
from sightline.text.vocabulary import SPECIAL

_LONG_AS_PROMPT = {"attention_mask": 1, "token_type_ids": 1}  # other such inputs go on with 0


class AdaptedModel(CaptionModel):
    """Image tokens and word pieces in, logits out.

    There is no second copy of any captioner: `unroll` runs the model's own forward pass. Only the
    function that makes its image tokens is replaced, by the tokens that are given. A region that is
    not there is hidden: the mean of the others stands in its place.
    """

    lrp_epsilon = 1e-6  # of paper 4's 0.01, deep Transformers would absorb a fifth of the relevance

    def __init__(
        self, model: nn.Module, family: Family, inputs: dict[str, Tensor], prompt: Tensor, end: int
    ) -> None:
        super().__init__()
        self.model, self.family = model, family
        self._names = [f"input_{name}" for name in inputs]
        for name, tensor in inputs.items():  # what the processor made of the prompt, (1, ...)
            self.register_buffer(f"input_{name}", tensor, persistent=False)
        ids = PieceIds.of(model.config, end)
        self.register_buffer("pieces", ids.pieces, persistent=False)
        self.register_buffer("banned", ids.banned, persistent=False)
        # The start word stands for the whole prompt, and has its relevance. Nothing hides it: there
        # the picture has its place.
        self.register_buffer("starts", prompt.repeat(len(SPECIAL), 1), persistent=False)
        self.vocabulary_size = len(ids.pieces)

    longest = 40  # pieces of a caption: words have more than one, and sentences may be long

    pieces: Tensor
    banned: Tensor
    starts: Tensor

    def encode(self, regions: Regions) -> Memory:
        vectors, mask = regions.vectors, regions.mask
        if not bool(mask.all()):
            visible = mask[..., None].to(vectors)
            mean = (vectors * visible).sum(1, keepdim=True) / visible.sum(1, keepdim=True)
            vectors = torch.where(mask[..., None], vectors, mean.expand_as(vectors))
        return {"image": vectors, "mask": mask}

    def start(self, memory: Memory, rows: int = 1) -> State:
        return {"said": memory["mask"].new_zeros(len(memory["mask"]), rows, 0, dtype=torch.long)}

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        """The next word. The first one runs the model's own pass; later ones go on from its cache.

        (`said` is all that a family without a cache has, and is run again.)
        """
        shape, before = tokens.shape, state["said"].shape[-1]
        said = torch.cat([state["said"], tokens[..., None]], -1)
        image = _for_rows(memory["image"], shape[1])
        cache = cache_of(state)
        with ONE_AT_A_TIME, self._recording() as weights:
            if cache is None:
                with self._seeing(image), self._keeping() as kept:
                    output = self.model(**self.inputs(self._ids(said.flatten(0, 1))))
                cache = kept[-1] if kept and not before else None
            else:
                ids, given = self.pieces[tokens.flatten()][:, None], self.starts.shape[1]
                output = self.family.goes_on(self.model, ids, cache, image, given + before - 1)
                cache = output.past_key_values
        condensed = self._condensed(weights, image)
        if condensed is None and "condensed" in state:  # queries are made with the first word
            condensed = state["condensed"].flatten(0, 1)
        new = {"said": said, **state_of(cache, shape)}
        if condensed is not None:
            new["condensed"] = torch.unflatten(condensed, 0, shape)
        unrolled = self._unrolled(
            output.logits[:, -1:], self._attention(weights, condensed, 1, image), shape, memory
        )
        return Step(unrolled.logits[:, :, 0], new, unrolled.attention[:, :, 0], {})

    def unroll(self, tokens: Tensor, memory: Memory) -> Unrolled:
        pictures, rows, length = tokens.shape
        image = _for_rows(memory["image"], rows)
        with ONE_AT_A_TIME, self._seeing(image), self._recording() as weights:
            logits = self.model(**self.inputs(self._ids(tokens.flatten(0, 1)))).logits
        attention = self._attention(weights, self._condensed(weights, image), length, image)
        return self._unrolled(logits[:, -length:], attention, (pictures, rows), memory)

    def _ids(self, tokens: Tensor) -> Tensor:
        """The model's own ids `(rows, ...)` of the prompt and of words `(rows, T)`."""
        return torch.cat([self.starts[tokens[:, :1]].flatten(1), self.pieces[tokens[:, 1:]]], 1)

    def _unrolled(
        self, logits: Tensor, attention: Tensor, shape: Sequence[int], memory: Memory
    ) -> Unrolled:
        """What the model says `(rows, T, ...)`, of our words and of the visible regions."""
        logits = PieceIds(self.pieces, self.banned).choose(logits)
        attention = torch.unflatten(attention, 0, tuple(shape)) * memory["mask"][:, None, None]
        attention = attention / attention.sum(-1, keepdim=True).clamp(min=1e-30)
        return Unrolled(torch.unflatten(logits, 0, tuple(shape)), attention, {})

    def inputs(self, ids: Tensor) -> dict[str, Any]:
        """The arguments of the model's forward pass, for rows of its word ids."""
        rows, length = ids.shape
        inputs: dict[str, Any] = {}
        for attribute in self._names:
            name, tensor = attribute.removeprefix("input_"), getattr(self, attribute)
            inputs[name] = tensor.expand(rows, *tensor.shape[1:])
            more = length - tensor.shape[1] if tensor.dim() == 2 else 0
            if not self.family.decodes and tensor.shape[1:2] == self.starts.shape[1:] and more > 0:
                following = tensor.new_full((rows, more), _LONG_AS_PROMPT.get(name, 0))
                inputs[name] = torch.cat([inputs[name], following], 1)
        inputs["decoder_input_ids" if self.family.decodes else "input_ids"] = ids
        dummy = torch.zeros(rows, *self.family.dummy, device=ids.device)
        return inputs | {self.family.pixel_input: dummy, "use_cache": False}

    @contextlib.contextmanager
    def _seeing(self, image: Tensor) -> Iterator[None]:
        """The model sees these image tokens, whatever pixels it is given."""
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        owner, name = resolve(self.model, self.family.image_tokens)
        pooled = list(image.unbind(0)) if self.family.field == "list" else image
        output = BaseModelOutputWithPooling(last_hidden_state=image, pooler_output=pooled)
        setattr(owner, name, lambda *args, **kwargs: output)
        try:
            yield
        finally:
            delattr(owner, name)

    @contextlib.contextmanager
    def _recording(self) -> Iterator["_Weights"]:
        """The attention weights `(rows, heads, queries, keys)` of the family's layers."""
        weights = _Weights([], [])
        hooks = [
            module.register_forward_hook(partial(_record, into))
            for pattern, into in (
                (self.family.attention, weights.words),
                (self.family.condenser, weights.queries),
            )
            if pattern
            for name, module in self.model.named_modules()
            if re.search(pattern, name)
        ]
        try:
            yield weights
        finally:
            for hook in hooks:
                hook.remove()

    @contextlib.contextmanager
    def _keeping(self) -> Iterator[list[Any]]:
        """The key-value caches of passes: what words to come need of those before."""
        speaker = self.model.get_submodule(self.family.speaker)
        caches: list[Any] = []
        hooks = [
            speaker.register_forward_pre_hook(
                lambda module, args, options: (args, {**options, "use_cache": True}),
                with_kwargs=True,
            ),
            speaker.register_forward_hook(
                lambda module, args, output: caches.append(output.past_key_values)
            ),
        ]
        try:
            yield caches
        finally:
            for hook in hooks:
                hook.remove()

    def _condensed(self, weights: "_Weights", image: Tensor) -> Tensor | None:
        """Where queries `(rows, queries, L)` looked, if there are any."""
        if not weights.queries:
            return None
        # (Kosmos-2's queries look at each other, too: those keys come last.)
        layers = torch.stack([layer.mean(1) for layer in weights.queries])
        return layers.mean(0)[..., : image.shape[1]]

    def _attention(
        self, weights: "_Weights", condensed: Tensor | None, length: int, image: Tensor
    ) -> Tensor:
        """Attention `(rows, T, L)`, the mean of layers and heads; even where none is reported."""
        regions = image.shape[1]
        queries = regions if condensed is None else condensed.shape[1]
        means = [layer.mean(1)[:, -length:] for layer in weights.words]
        reported = [mean[..., self._columns(mean.shape[-1], queries)] for mean in means]
        if not reported:
            return torch.full_like(image[:, :1, 0], 1 / regions)[..., None].expand(
                -1, length, regions
            )
        attention = torch.stack(reported).mean(0)
        return attention if condensed is None else attention @ condensed

    def _columns(self, keys: int, queries: int) -> Tensor:
        """Where the image tokens stand among the keys: they are all, or in the prompt, or first."""
        first = torch.arange(queries, device=self.starts.device)
        if keys == queries:
            return first
        marked = self._image_places()
        return marked if len(marked) == queries else first

    def _image_places(self) -> Tensor:
        """The positions of the prompt in whose places image tokens come."""
        config: Any = self.model.config
        if "input_image_embeds_position_mask" in self._names:  # Kosmos-2
            marked = self.get_buffer("input_image_embeds_position_mask")[0] == 1
        else:
            prompt = (
                self.get_buffer("input_input_ids")[0] if self.family.decodes else self.starts[0]
            )
            marked = prompt == getattr(config, "image_token_id", -1)
        return marked.nonzero().flatten()

    def text_sequence(self, tokens: Tensor) -> TextSequence:
        """The prompt, which is all of the start word, with image tokens in it or not; then words.

        (GIT's image tokens come before all that, without a place in the prompt.)
        """
        if self.family.condenser or (self.family.decodes and self.family.prompted):
            raise NotApplicableError(
                f"{self.family.name}: its words see the picture through a third sequence, of "
                f"{'queries' if self.family.condenser else 'picture and prompt'}; attention cannot "
                "be rolled out"
            )
        prompt = self.starts.new_zeros(self.starts.shape[1])
        after = torch.arange(1, tokens.shape[2], device=prompt.device)
        of_words = torch.cat([prompt, after])
        of_regions = torch.full_like(of_words, -1)
        if not self.family.decodes:
            places = self._image_places()
            of_words[places] = -1
            of_regions[places] = torch.arange(len(places), device=places.device)
        return TextSequence(of_words, of_regions)


class _Weights(NamedTuple):
    """What attention layers gave: of words, and of queries that condense the image tokens."""

    words: list[Tensor]
    queries: list[Tensor]


def _for_rows(image: Tensor, rows: int) -> Tensor:
    return image if rows == 1 else image.repeat_interleave(rows, 0)


def _record(weights: list[Tensor], module: nn.Module, args: Any, output: Any) -> None:
    parts = output[1:] if isinstance(output, tuple) else ()
    # (Pix2Struct's come after the biases of positions.)
    found = [part for part in parts if isinstance(part, Tensor) and part.dim() == 4]
    weights += [part.detach() for part in found[-1:]]
