"""The discriminator of paper 2: is a caption human, and the features leaked to the MANAGER."""

from typing import cast

import torch
from torch import Tensor, nn

from sightline.models.layers import Dropout
from sightline.models.sru import SRU
from sightline.text.vocabulary import PAD

LAYERS = 3  # of the extractor (section 4.3); the released code has one


class Discriminator(nn.Module):
    """Three layers of SRU over the words, and a verdict on what they make of a caption.

    The features after each word leak to the MANAGER. Goals are shorter than features; so that a
    goal can point somewhere, the verdict is drawn from as many numbers as a goal has, the
    `aspects` of the features. (The released code goes from features to verdict in one map, and
    has no use for the direction of a goal.)

    Every caption is read from nothing: no state goes from one to the next. (In the released code
    the generated caption is read as a continuation of the real one.) The embedding is its own,
    so that the captioner's steps do not move what the discriminator reads.

    >>> judge = Discriminator(vocabulary_size=9, width=4, aspects=2).eval()
    >>> captions = torch.tensor([[[1, 5, 6, 2, 0], [1, 7, 8, 5, 2]]])  # one picture, two captions
    >>> judge(captions).shape, judge.features(captions).shape
    (torch.Size([1, 2]), torch.Size([1, 2, 5, 4]))
    """

    def __init__(
        self,
        vocabulary_size: int,
        width: int,
        aspects: int,
        picture_width: int = 0,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(vocabulary_size, width)
        self.extractor = nn.ModuleList(
            SRU(width, width, 0 if layer else picture_width) for layer in range(LAYERS)
        )
        self.aspect = nn.Linear(width, aspects)
        self.verdict = nn.Linear(aspects, 1)
        self.dropout = Dropout(dropout)
        # Ours: words of the scale of one, which `nn.Embedding` gives. An SRU has no matrix from
        # state to state, so that only its gates can tell a word that is right here from one that
        # is right elsewhere. It learns faster so than from Xavier's small words, of which gates are
        # nearly linear.
        for layer in self._layers:
            nn.init.ones_(layer.gate_bias[:width])  # b_f: what was wrong early is remembered
        for weight in (self.aspect.weight, self.verdict.weight):
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.aspect.bias)
        nn.init.zeros_(self.verdict.bias)

    def forward(self, captions: Tensor, picture: Tensor | None = None) -> Tensor:
        """The logit `(B, K)` that a person wrote each caption, having read its last word.

        Captions `(B, K, T)` begin with the start word; padding follows the last word. Pictures
        `(B, D)` are given if and only if the discriminator was built to see them.
        """
        last = (captions != PAD).sum(-1) - 1
        features = self.features(captions, picture)
        here = last[..., None, None].expand(-1, -1, 1, self.width)
        return self.verdicts(features.gather(2, here).squeeze(2))

    def features(self, tokens: Tensor, picture: Tensor | None = None) -> Tensor:
        """What is leaked `(B, K, T, width)`: the features after each word of the prefix so far."""
        x: Tensor = self.embedding(tokens)
        nothing = x.new_zeros(*tokens.shape[:2], self.width)
        for layer in self._layers:
            x = layer(_products(layer, x, picture), nothing)
        return x

    def step(
        self, tokens: Tensor, cells: Tensor, picture: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The features `(B, K, width)` after one more word, and the cells `(B, K, 3, width)`."""
        x: Tensor = self.embedding(tokens)
        after = []
        for layer, cell in zip(self._layers, cells.unbind(2), strict=True):
            x, cell = layer.step(_products(layer, x, picture), cell)
            after.append(cell)
        return x, torch.stack(after, 2)

    @property
    def _layers(self) -> list[SRU]:
        return cast(list[SRU], list(self.extractor))

    def aspects(self, features: Tensor) -> Tensor:
        """The part of features `(..., width)` that verdicts are drawn from `(..., aspects)`."""
        return torch.tanh(self.aspect(features))

    def verdicts(self, features: Tensor) -> Tensor:
        """The logit `(...)` that a caption with these features is a person's."""
        verdicts: Tensor = self.verdict(self.aspects(self.dropout(features)))
        return verdicts.squeeze(-1)


def _products(layer: SRU, x: Tensor, picture: Tensor | None) -> Tensor:
    """Of words `(B, K, ..., D)`, and of their pictures in the layer that sees them."""
    products = layer.language(x)
    if picture is None or layer.from_image is None:
        return products
    seen = layer.image(picture)
    return products + seen.view(len(seen), *[1] * (x.dim() - 2), -1)
