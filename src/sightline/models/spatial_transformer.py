"""Image-to-text transduction with spatial self-attention (paper 3)."""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn

from sightline.config import Layers, Range, Width
from sightline.models.alignment import AlignmentConfig
from sightline.models.transformer import Transformer, TransformerSizes
from sightline.models.transformer_layers import LayerOptions, sinusoids
from sightline.regions import Regions


@dataclass(frozen=True)
class SpatialTransformerConfig(TransformerSizes):
    """The paper's sizes. Alignment (paper 0) goes with any picture attention, so with this one."""

    encoder_layers: Annotated[int, Range(0, 64)] = 2
    decoder_layers: Layers = 4
    feed_forward: Width = 1024
    # τ = √(d_len + d_attn) as in eq. 2; without, √d_attn as in Vaswani et al. 2017.
    scale_by_length: bool = True
    alignment: AlignmentConfig | None = None

    @property
    def layer(self) -> LayerOptions:
        # Dropout is of attention weights (and of words and regions), not of what sublayers add.
        return LayerOptions(
            self.width,
            self.heads,
            self.feed_forward,
            norm="post",
            attention_dropout=self.dropout,
            scale_by_length=self.scale_by_length,
            alignment=self.alignment,
        )


class SpatialTransformer(Transformer):
    """A Transformer over the cells of a grid, whose softmax is flatter the more there is to see.

    Departures from the paper: the residual of inter-attention is around the words, since the
    printed one, around the values, has another length; feature maps of any width are projected to
    the model's; d_len of τ is the number of places that a query may see, so that teacher forcing
    and decoding agree.
    """

    config: SpatialTransformerConfig

    def _create_place(self) -> nn.Module:
        return GridPlace(self.config.width)


class GridPlace(nn.Module):
    """Sinusoids over the places in the order of the grid, row by row, as over words."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, regions: Regions) -> Tensor:
        # Counted among the regions there are: padding in front moves nothing.
        place = regions.mask.cumsum(1) - 1
        return sinusoids(place.to(regions.vectors.dtype), self.width)
