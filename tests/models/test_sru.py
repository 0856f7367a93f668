import math

import pytest
import torch

from sightline.models.sru import SRU


@pytest.fixture
def layer():
    torch.manual_seed(0)
    layer = SRU(width=3, language_width=4, image_width=2).double()
    torch.nn.init.normal_(layer.gate_bias)
    return layer


@pytest.fixture
def inputs():
    """Language and image contexts of 2 x 5 sequences of six steps, and their first cells."""
    torch.manual_seed(1)
    return tuple(torch.randn(2, 5, *sizes).double() for sizes in ((6, 4), (6, 2), (3,)))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def printed_equations(layer, x, z, cell):
    """Paper 2, section 3.4, number by number; x, z and the cell are lists."""
    matrices = torch.cat([layer.from_language.weight, layer.from_image.weight], 1).tolist()
    bias, width, hidden = layer.gate_bias.tolist(), len(cell), []
    for x_t, z_t in zip(x, z, strict=True):
        concatenated = [*x_t, *z_t]
        products = [sum(w * v for w, v in zip(row, concatenated, strict=True)) for row in matrices]
        after, now = [], []
        for i in range(width):
            f = sigmoid(products[i] + bias[i])
            r = sigmoid(products[width + i] + bias[width + i])
            after.append(f * cell[i] + (1 - f) * products[2 * width + i])
            now.append(r * math.tanh(after[i]) + (1 - r) * products[3 * width + i])
        cell = after
        hidden.append(now)
    return hidden, cell


def test_all_steps_at_once_are_the_printed_equations(layer, inputs):
    x, z, cell = inputs
    hidden = layer(layer.language(x) + layer.image(z), cell)
    for b in range(2):
        for k in range(5):
            expected, _ = printed_equations(layer, *(part[b, k].tolist() for part in inputs))
            expected = torch.tensor(expected, dtype=torch.float64)
            torch.testing.assert_close(hidden[b, k], expected, rtol=0, atol=1e-12)


def test_step_by_step_is_the_same(layer, inputs):
    x, z, cell = inputs
    together = layer(layer.language(x) + layer.image(z), cell)
    for t in range(6):
        products = layer.language(x[:, :, t]) + layer.image(z[:, :, t])
        hidden, cell = layer.step(products, cell)
        torch.testing.assert_close(hidden, together[:, :, t], rtol=0, atol=1e-14)
    _, last = printed_equations(layer, x[1, 2].tolist(), z[1, 2].tolist(), inputs[2][1, 2].tolist())
    assert cell[1, 2].tolist() == pytest.approx(last)


def test_its_matrices_are_orthogonal_over_the_whole_input(layer):
    whole = torch.cat([layer.from_language.weight, layer.from_image.weight], 1)
    for matrix in whole.chunk(4):  # W_f, W_r, W and W_h, three rows each
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(3).double(), rtol=0, atol=1e-6)
    assert len({matrix[0, 0].item() for matrix in whole.chunk(4)}) == 4
    assert (SRU(3, 4).gate_bias == 0).all()


def test_without_an_image_there_is_only_language():
    layer = SRU(width=3, language_width=4)
    assert [name for name, _ in layer.named_parameters()] == ["gate_bias", "from_language.weight"]
