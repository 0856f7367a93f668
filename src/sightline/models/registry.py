"""The captioners by name."""

from dataclasses import dataclass
from typing import Any

from sightline.config import from_dict, nearest
from sightline.errors import ConfigError
from sightline.models.adaptive_attention import AdaptiveAttention, AdaptiveAttentionConfig
from sightline.models.aligned_transformer import AlignedTransformer, AlignedTransformerConfig
from sightline.models.grid_td import GridTD
from sightline.models.hard_attention import HardAttention, HardAttentionConfig
from sightline.models.hierarchical import Hierarchical, HierarchicalConfig
from sightline.models.interface import CaptionModel
from sightline.models.soft_attention import SoftAttention, SoftAttentionConfig
from sightline.models.spatial_transformer import SpatialTransformer, SpatialTransformerConfig
from sightline.models.transformer import Transformer, TransformerConfig


@dataclass(frozen=True)
class ModelEntry:
    """One line of the table."""

    build: Any  # (vocabulary_size, region_dim, config) -> CaptionModel
    config: type
    paper: str
    summary: str


MODELS = {
    "soft_attention": ModelEntry(
        SoftAttention,
        SoftAttentionConfig,
        "1: Show, attend and tell",
        "LSTM over a weighted mean of the regions",
    ),
    "hard_attention": ModelEntry(
        HardAttention,
        HardAttentionConfig,
        "1: Show, attend and tell",
        "LSTM that looks at one sampled region per word",
    ),
    "adaptive_attention": ModelEntry(
        AdaptiveAttention,
        AdaptiveAttentionConfig,
        "4: Beyond visualizing attention",
        "LSTM that weighs the regions against a visual sentinel",
    ),
    "grid_td": ModelEntry(
        GridTD,
        AdaptiveAttentionConfig,
        "4: Beyond visualizing attention",
        "adaptive attention between a top-down and a language LSTM",
    ),
    "transformer": ModelEntry(
        Transformer,
        TransformerConfig,
        "0: Attention-aligned Transformer",
        "its baseline: attention layers over regions and words",
    ),
    "aligned_transformer": ModelEntry(
        AlignedTransformer,
        AlignedTransformerConfig,
        "0: Attention-aligned Transformer",
        "Transformer whose attention follows what the captions depend on",
    ),
    "spatial_transformer": ModelEntry(
        SpatialTransformer,
        SpatialTransformerConfig,
        "3: Spatial self-attention",
        "Transformer over a grid, its attention spread by length",
    ),
    "hierarchical": ModelEntry(
        Hierarchical,
        HierarchicalConfig,
        "2: Hierarchical adversarial captioning",
        "SRU whose words follow goals set from what a discriminator leaks",
    ),
}


def list_models() -> list[str]:
    """Names that `create_model` knows.

    >>> "soft_attention" in list_models()
    True
    """
    return list(MODELS)


def model_config(name: str, options: dict[str, Any] | None = None) -> Any:
    """The configuration of a captioner, checked, without building it.

    >>> model_config("soft_attention", {"state_width": 64}).state_width
    64
    """
    if name not in MODELS:
        raise ConfigError(f"model: none is called '{name}'; {nearest(name, list(MODELS))}")
    return from_dict(MODELS[name].config, options or {}, f"model {name}")


def create_model(
    name: str, vocabulary_size: int, region_dim: int, options: dict[str, Any] | None = None
) -> CaptionModel:
    """A captioner with fresh weights.

    >>> model = create_model("soft_attention", 100, 1280, {"state_width": 64})
    >>> model.config.state_width
    64
    """
    config = model_config(name, options)
    model: CaptionModel = MODELS[name].build(vocabulary_size, region_dim, config)
    return model
