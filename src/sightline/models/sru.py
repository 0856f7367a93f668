"""The simple recurrent unit (paper 2, section 3.4)."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class SRU(nn.Module):
    """A recurrent layer in which no matrix product waits for the step before.

        x̃_t = W (x_t ⊕ z_t)
        f_t = σ(W_f (x_t ⊕ z_t) + b_f)
        r_t = σ(W_r (x_t ⊕ z_t) + b_r)
        c_t = f_t ⊙ c_{t-1} + (1 - f_t) ⊙ x̃_t
        h_t = r_t ⊙ tanh(c_t) + (1 - r_t) ⊙ W_h (x_t ⊕ z_t)

    Its four products are linear in x ⊕ z, so the parts of x (`language`) and of z (`image`) are
    taken where each is known, for as many steps as are known, and added.

    >>> layer = SRU(width=4, language_width=3)
    >>> words = torch.zeros(2, 5, 7, 3)  # of two pictures with five captions of seven words
    >>> layer(layer.language(words), cell=torch.zeros(2, 5, 4)).shape
    torch.Size([2, 5, 7, 4])
    """

    def __init__(self, width: int, language_width: int, image_width: int = 0) -> None:
        super().__init__()
        # The rows of W_f, W_r, W and W_h, one below the other.
        self.from_language = nn.Linear(language_width, 4 * width, bias=False)
        self.from_image = nn.Linear(image_width, 4 * width, bias=False) if image_width else None
        self.gate_bias = nn.Parameter(torch.zeros(2 * width))  # b_f and b_r
        # "Orthogonal for those RNN models": an SRU has no matrix from state to state, so we read
        # it as each of its four matrices, over the whole of x ⊕ z. So does the released code.
        whole = torch.empty(width, language_width + image_width)
        for block in range(4):
            rows = slice(block * width, (block + 1) * width)
            nn.init.orthogonal_(whole)
            self.from_language.weight.data[rows] = whole[:, :language_width]
            if self.from_image is not None:
                self.from_image.weight.data[rows] = whole[:, language_width:]

    def language(self, x: Tensor) -> Tensor:
        """The part of x in the four products `(..., 4 * width)`, with the biases of the gates."""
        bias = functional.pad(self.gate_bias, (0, len(self.gate_bias)))
        return functional.linear(x, self.from_language.weight, bias)

    def image(self, z: Tensor) -> Tensor:
        """The part of z in the four products; only for a layer with an `image_width`."""
        assert self.from_image is not None
        products: Tensor = self.from_image(z)
        return products

    def forward(self, products: Tensor, cell: Tensor) -> Tensor:
        """The hidden states `(..., T, width)` of all steps, from the products of all steps."""
        forget, reset, fresh, highway = _gated(products)
        cells = []
        for kept, new in zip(forget.unbind(-2), fresh.unbind(-2), strict=True):
            cell = kept * cell + new
            cells.append(cell)
        return reset * torch.tanh(torch.stack(cells, -2)) + highway

    def step(self, products: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """The hidden state and the cell of one step."""
        forget, reset, fresh, highway = _gated(products)
        cell = forget * cell + fresh
        return reset * torch.tanh(cell) + highway, cell


def _gated(products: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """f, r, (1 - f) ⊙ x̃ and (1 - r) ⊙ W_h (x ⊕ z): all that does not need the cell."""
    gates, signals = products.chunk(2, -1)
    gates = torch.sigmoid(gates)
    fresh, highway = ((1 - gates) * signals).chunk(2, -1)
    forget, reset = gates.chunk(2, -1)
    return forget, reset, fresh, highway
