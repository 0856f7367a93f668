"""The attention-aligned Transformer, A² (paper 0, section 4)."""

from dataclasses import dataclass, field, replace

from sightline.models.alignment import AlignmentConfig
from sightline.models.transformer import Transformer, TransformerConfig
from sightline.models.transformer_layers import LayerOptions


@dataclass(frozen=True)
class AlignedTransformerConfig(TransformerConfig):
    """As the plain Transformer, and how attention is aligned in every decoder layer."""

    alignment: AlignmentConfig = field(default_factory=AlignmentConfig)

    @property
    def layer(self) -> LayerOptions:
        return replace(super().layer, alignment=self.alignment)


class AlignedTransformer(Transformer):
    """A Transformer with a mask network for the picture attention of every decoder layer.

    Train it with the objective `aligned`. Two signals tell of a word: `mask`, the mean of its masks
    (1 where nothing matters), and with the fusion `gate` the mean gate (1 where attention is left
    as it is).
    """

    config: AlignedTransformerConfig
