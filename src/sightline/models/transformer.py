"""The plain Transformer captioner: the baseline of paper 0 (section 2)."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, overload

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sightline.config import Layers, Range, Share, Width, require_at_least
from sightline.errors import ConfigError
from sightline.models.alignment import MASK_KEYS, mean_mask, perturbation
from sightline.models.interface import AttentionMaps, CaptionModel, Memory, State, Step, Unrolled
from sightline.models.layers import Dropout
from sightline.models.transformer_decoder import Decoded, Decoder
from sightline.models.transformer_layers import DecoderLayer, EncoderLayer, LayerOptions
from sightline.regions import Regions


@dataclass(frozen=True)
class TransformerSizes:
    """What all Transformer captioners have; the defaults are paper 0's."""

    width: Width = 512  # d
    heads: Annotated[int, Range(1, 256)] = 8
    encoder_layers: Annotated[int, Range(0, 64)] = 6
    decoder_layers: Layers = 6
    feed_forward: Width = 2048
    dropout: Share = 0.1
    # The decoder layer whose attention is reported, its heads averaged; -1 is the last. On scenes
    # the first looks at what is named the most, and every later one less.
    attention_layer: int = 0
    tie_words: bool = False  # words are read and written with the same vectors

    def __post_init__(self) -> None:
        require_at_least(0, "model", encoder_layers=self.encoder_layers)
        require_at_least(1, "model", decoder_layers=self.decoder_layers)
        if not -self.decoder_layers <= self.attention_layer < self.decoder_layers:
            raise ConfigError(
                f"model.attention_layer: there is no layer {self.attention_layer}; "
                f"the model has {self.decoder_layers} decoder layers"
            )
        _ = self.layer  # refuses what cannot be

    @property
    def layer(self) -> LayerOptions:
        """How a layer is built."""
        raise NotImplementedError


@dataclass(frozen=True)
class TransformerConfig(TransformerSizes):
    """Sizes, the place of the norms, and how a region says where it is."""

    norm: Literal["pre", "post"] = "post"
    # A linear map of the region's box. Detected regions had nothing of the kind in the paper; the
    # cells of a grid need it, or the model could not tell left from right.
    region_position: Literal["box", "none"] = "box"

    @property
    def layer(self) -> LayerOptions:
        return LayerOptions(
            self.width, self.heads, self.feed_forward, self.norm, dropout=self.dropout
        )


class BothPasses(NamedTuple):
    """What an aligned captioner makes of captions, and what is left under perturbation."""

    aligned: Unrolled  # trains everything but the mask networks
    perturbed: Unrolled  # trains the mask networks alone; `penalty` of eq. 4 is among its signals


class Transformer(CaptionModel):
    """An encoder over the regions and a decoder over the words, of attention layers alone.

    Departures from paper 0: regions may say where they are, and dropout is also on the projected
    regions and the embedded words (as Vaswani et al. 2017 have it), not on sublayers alone.
    """

    config: TransformerSizes

    def __init__(self, vocabulary_size: int, region_dim: int, config: TransformerSizes) -> None:
        super().__init__()
        self.config = config
        self.project = nn.Linear(region_dim, config.width)
        self.place = self._create_place()
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(
            EncoderLayer(config.layer) for _ in range(config.encoder_layers)
        )
        self.norm = nn.LayerNorm(config.width) if config.layer.norm == "pre" else nn.Identity()
        self.decoder = Decoder(
            vocabulary_size, config.decoder_layers, config.layer, config.dropout, config.tie_words
        )

    def _create_place(self) -> nn.Module | None:
        """What makes a signal `(B, L, D)` of where regions are, if anything does."""
        assert isinstance(self.config, TransformerConfig)
        return BoxPlace(self.config.width) if self.config.region_position == "box" else None

    def encode(self, regions: Regions) -> Memory:
        return self.remember(self.hidden(regions), regions.mask)

    def hidden(self, regions: Regions) -> Tensor:
        """h `(B, L, D)`: the regions as the encoder leaves them to the decoder."""
        x = self._enter(regions)
        for layer in self.encoder:
            x = layer(x, regions.mask[:, None, None])
        hidden: Tensor = self.norm(x)
        return hidden

    def remember(self, hidden: Tensor, mask: Tensor) -> Memory:
        """What the decoder keeps of h; `mask` `(B, L)` says which regions there are."""
        memory = {"visible": mask}
        for i, layer in enumerate(self.decoder.layers):
            assert isinstance(layer, DecoderLayer)
            memory |= {f"{i}.{name}": t for name, t in layer.picture.remember(hidden).items()}
        return memory

    def self_attention(self, regions: Regions) -> Tensor:
        """How regions look at regions in the encoder `(B, layers, heads, L, L)` (paper 3, fig. 1).

        >>> model = Transformer(9, 5, TransformerConfig(8, 2, 1, 3, 16))
        >>> regions = Regions(torch.ones(1, 4, 5), torch.ones(1, 4) > 0, torch.zeros(1, 4, 4))
        >>> model.self_attention(regions).shape
        torch.Size([1, 1, 2, 4, 4])
        """
        x, maps = self._enter(regions), []
        for layer in self.encoder:
            assert isinstance(layer, EncoderLayer)
            x, attended = layer.look(x, regions.mask[:, None, None], weights=True)
            assert attended.raw is not None
            maps.append(attended.raw)
        size = (len(x), 0, self.config.heads, x.shape[1], x.shape[1])
        return torch.stack(maps, 1) if maps else x.new_empty(size)

    def _enter(self, regions: Regions) -> Tensor:
        """What goes into the first layer of the encoder."""
        x = self.project(regions.vectors)
        if self.place is not None:
            x = x + self.place(regions)
        entering: Tensor = self.dropout(x)
        return entering

    def start(self, memory: Memory, rows: int = 1) -> State:
        return self.decoder.start(len(memory["visible"]), rows)

    def step(self, tokens: Tensor, state: State, memory: Memory) -> Step:
        unrolled, state = self._decode(tokens[..., None], state, memory)
        signals = {name: signal.squeeze(2) for name, signal in unrolled.signals.items()}
        return Step(unrolled.logits.squeeze(2), state, unrolled.attention.squeeze(2), signals)

    def unroll(self, tokens: Tensor, memory: Memory) -> Unrolled:
        """All words at once; each sees only those before it."""
        return self._decode(tokens, self.start(memory, tokens.shape[1]), memory)[0]

    @overload
    def forward(self, regions: Regions, tokens: Tensor) -> Unrolled: ...
    @overload
    def forward(
        self, regions: Regions, tokens: Tensor, *, perturb: Literal[True]
    ) -> BothPasses: ...
    def forward(
        self, regions: Regions, tokens: Tensor, *, perturb: bool = False
    ) -> Unrolled | BothPasses:
        """The teacher-forced pass; with `perturb`, the aligned and the perturbed one.

        Both in one call, so that pictures are encoded once, and so that one backward pass through
        a model that several processes share finds all its gradients.
        """
        memory = self.encode(regions)
        aligned = self.unroll(tokens, memory)
        return BothPasses(aligned, self._perturbed(tokens, memory)) if perturb else aligned

    def _perturbed(self, tokens: Tensor, memory: Memory) -> Unrolled:
        """The pass that mask networks learn from (paper 0, eq. 4): all but them is constant."""
        constants = {
            name: parameter.detach()
            for name, parameter in self.decoder.named_parameters()
            if ".picture.mask." not in name
        }
        fixed = {
            name: tensor if name.endswith(MASK_KEYS) else tensor.detach()
            for name, tensor in memory.items()
        }
        words = (tokens, self.start(memory, tokens.shape[1]), fixed)
        decoded: Decoded = functional_call(self.decoder, constants, words, {"perturb": True})
        visible = memory["visible"][:, None, None]
        masks = [layer.mask for layer in decoded.picture_attention if layer.mask is not None]
        penalty = torch.stack([perturbation(mask, visible) for mask in masks]).mean(0)
        unrolled = self._describe(decoded, tokens, memory)
        unrolled.signals["penalty"] = torch.unflatten(penalty, 1, tokens.shape[1:])
        return unrolled

    def attention_maps(self, tokens: Tensor, memory: Memory) -> AttentionMaps:
        """Where every head of every layer looked, for captions `(B, K, T)` as `unroll` takes them.

        >>> model = Transformer(9, 5, TransformerConfig(8, 2, 1, 3, 16))
        >>> regions = Regions(torch.ones(1, 4, 5), torch.ones(1, 4) > 0, torch.zeros(1, 4, 4))
        >>> tokens = torch.ones(1, 2, 7, dtype=torch.long)
        >>> model.attention_maps(tokens, model.encode(regions)).raw.shape
        torch.Size([1, 2, 7, 3, 2, 4])
        """
        state = self.start(memory, tokens.shape[1])
        every = range(len(self.decoder.layers))
        layers = self.decoder(tokens, state, memory, weigh=every).picture_attention

        def gather(maps: list[Tensor | None]) -> Tensor | None:
            known = [weights for weights in maps if weights is not None]
            if not known:
                return None
            stacked = torch.stack(known, 1)
            return torch.unflatten(stacked, 3, tokens.shape[1:]).permute(0, 3, 4, 1, 2, 5)

        raw = gather([layer.raw for layer in layers])
        used = gather([layer.used for layer in layers])
        assert raw is not None
        assert used is not None
        return AttentionMaps(raw, used, gather([layer.mask for layer in layers]))

    def _decode(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Unrolled, State]:
        reported = self.config.attention_layer % len(self.decoder.layers)
        decoded: Decoded = self.decoder(tokens, state, memory, weigh=(reported,))
        return self._describe(decoded, tokens, memory), decoded.state

    def _describe(self, decoded: Decoded, tokens: Tensor, memory: Memory) -> Unrolled:
        """Words, the attention of the layer that is reported, and the signals of alignment."""
        visible = memory["visible"][:, None, None]
        used = decoded.picture_attention[self.config.attention_layer].used
        assert used is not None
        attention = used.mean(1)
        attention = attention / attention.sum(-1, keepdim=True)
        signals: dict[str, list[Tensor]] = {}
        for layer in decoded.picture_attention:
            if layer.mask is not None:
                signals.setdefault("mask", []).append(mean_mask(layer.mask.detach(), visible))
            if layer.gate is not None:
                signals.setdefault("gate", []).append(layer.gate.detach().mean(1))
        rows = tokens.shape[1:]
        return Unrolled(
            decoded.logits,
            torch.unflatten(attention, 1, rows),
            {
                name: torch.unflatten(torch.stack(layers).mean(0), 1, rows)
                for name, layers in signals.items()
            },
        )


class BoxPlace(nn.Module):
    """A linear map of a region's box."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(4, width, bias=False)

    def forward(self, regions: Regions) -> Tensor:
        place: Tensor = self.linear(regions.boxes.to(self.linear.weight.dtype))
        return place
