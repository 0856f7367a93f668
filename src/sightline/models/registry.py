"""The captioners by name: ours, and those of plug-ins."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sightline.config import from_dict
from sightline.models.adaptive_attention import AdaptiveAttention, AdaptiveAttentionConfig
from sightline.models.aligned_transformer import AlignedTransformer, AlignedTransformerConfig
from sightline.models.grid_td import GridTD
from sightline.models.hard_attention import HardAttention, HardAttentionConfig
from sightline.models.hierarchical import Hierarchical, HierarchicalConfig
from sightline.models.interface import CaptionModel
from sightline.models.soft_attention import SoftAttention, SoftAttentionConfig
from sightline.models.spatial_transformer import SpatialTransformer, SpatialTransformerConfig
from sightline.models.transformer import Transformer, TransformerConfig
from sightline.plugins import Registry


@dataclass(frozen=True)
class ModelEntry:
    """A captioner as the table has it, ours or a plug-in's.

    >>> from dataclasses import replace
    >>> replace(MODELS.builtin["transformer"], paper="").summary
    'its baseline: attention layers over regions and words'
    """

    build: Callable[[int, int, Any], CaptionModel]  # of vocabulary size, region width, config
    config: type  # a dataclass, whose fields a recipe may set
    summary: str
    paper: str = ""
    # Options that make it small, one set for each variant worth testing: what the laws run on.
    tiny: tuple[dict[str, Any], ...] = ({},)


_RECURRENT = {"region_width": 5, "word_width": 4, "state_width": 7, "attention_width": 3}
_ADAPTIVE = {"word_width": 4, "state_width": 7, "attention_width": 3}
_ATTENTIVE = {"width": 8, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 12}
_HIERARCHICAL = {
    "region_width": 5,
    "word_width": 4,
    "worker_width": 7,
    "manager_width": 6,
    "goal_width": 3,
    "attention_width": 3,
    "discriminator_width": 4,
}

MODELS = Registry(
    "models",
    ModelEntry,
    "model: none is called",
    {
        "soft_attention": ModelEntry(
            SoftAttention,
            SoftAttentionConfig,
            "LSTM over a weighted mean of the regions",
            "1: Show, attend and tell",
            (_RECURRENT, {**_RECURRENT, "region_width": 0}),
        ),
        "hard_attention": ModelEntry(
            HardAttention,
            HardAttentionConfig,
            "LSTM that looks at one sampled region per word",
            "1: Show, attend and tell",
            (_RECURRENT, {**_RECURRENT, "look": "argmax"}),
        ),
        "adaptive_attention": ModelEntry(
            AdaptiveAttention,
            AdaptiveAttentionConfig,
            "LSTM that weighs the regions against a visual sentinel",
            "4: Beyond visualizing attention",
            (_ADAPTIVE,),
        ),
        "grid_td": ModelEntry(
            GridTD,
            AdaptiveAttentionConfig,
            "adaptive attention between a top-down and a language LSTM",
            "4: Beyond visualizing attention",
            (_ADAPTIVE,),
        ),
        "transformer": ModelEntry(
            Transformer,
            TransformerConfig,
            "its baseline: attention layers over regions and words",
            "0: Attention-aligned Transformer",
            (
                _ATTENTIVE,
                {**_ATTENTIVE, "norm": "pre", "region_position": "none", "attention_layer": -1},
                {**_ATTENTIVE, "encoder_layers": 0, "tie_words": True},
            ),
        ),
        "aligned_transformer": ModelEntry(
            AlignedTransformer,
            AlignedTransformerConfig,
            "Transformer whose attention follows what the captions depend on",
            "0: Attention-aligned Transformer",
            (
                {**_ATTENTIVE, "alignment": {"fusion": "max"}},
                {
                    **_ATTENTIVE,
                    "alignment": {"fusion": "average", "average": "head_mean"},
                    "norm": "pre",
                },
                {**_ATTENTIVE, "alignment": {"fusion": "decay"}},
                {**_ATTENTIVE, "alignment": {"fusion": "gate"}},
                {**_ATTENTIVE, "alignment": {"fusion": "gate", "mask": "linear", "regions": 5}},
            ),
        ),
        "spatial_transformer": ModelEntry(
            SpatialTransformer,
            SpatialTransformerConfig,
            "Transformer over a grid, its attention spread by length",
            "3: Spatial self-attention",
            (_ATTENTIVE, {**_ATTENTIVE, "alignment": {"fusion": "gate"}}),
        ),
        "hierarchical": ModelEntry(
            Hierarchical,
            HierarchicalConfig,
            "SRU whose words follow goals set from what a discriminator leaks",
            "2: Hierarchical adversarial captioning",
            (_HIERARCHICAL, {**_HIERARCHICAL, "discriminator_sees_picture": True}),
        ),
    },
)


def list_models() -> list[str]:
    """Names that `create_model` knows.

    >>> "soft_attention" in list_models()
    True
    """
    return MODELS.names()


def model_config(name: str, options: dict[str, Any] | None = None) -> Any:
    """The configuration of a captioner, checked, without building it.

    >>> model_config("soft_attention", {"state_width": 64}).state_width
    64
    """
    return from_dict(MODELS.find(name).config, options or {}, f"model {name}")


def create_model(
    name: str, vocabulary_size: int, region_dim: int, options: dict[str, Any] | None = None
) -> CaptionModel:
    """A captioner with fresh weights.

    >>> model = create_model("soft_attention", 100, 1280, {"state_width": 64})
    >>> model.config.state_width
    64
    """
    config = model_config(name, options)
    return MODELS.find(name).build(vocabulary_size, region_dim, config)
