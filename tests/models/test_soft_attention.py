import pytest
import torch

from sightline.errors import ConfigError
from sightline.models.soft_attention import SoftAttention, SoftAttentionConfig
from sightline.regions import Regions


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = SoftAttentionConfig(
        region_width=5, word_width=4, state_width=3, attention_width=6, dropout=0.5
    )
    return SoftAttention(9, 7, config).double().eval()


@pytest.fixture
def regions():
    torch.manual_seed(1)
    mask = torch.tensor([[True, True, True, False]])
    return Regions(torch.randn(1, 4, 7).double(), mask, torch.zeros(1, 4, 4))


def test_a_step_is_the_papers_equations(model, regions):
    """Region by region and gate by gate, written out for one picture (paper 1, section 3.1)."""
    sigmoid, tanh = torch.sigmoid, torch.tanh
    annotations = [model.project(vector) for vector in regions.vectors[0][:3]]
    mean = sum(annotations) / 3
    hidden, cell = tanh(model.init_hidden(mean)), tanh(model.init_cell(mean))

    unrolled = model(regions, torch.tensor([[[1, 5]]]))
    for t, word in enumerate((1, 5)):
        embedded = model.embedding.weight[word]
        products = model.from_hidden(hidden)
        query, gate, from_hidden = products[:6], products[6:7], products[7:]
        energies = [model.score @ tanh(model.key(a) + query) for a in annotations]
        total = sum(energy.exp() for energy in energies)
        alphas = [energy.exp() / total for energy in energies]
        beta = sigmoid(gate)
        context = beta * sum(alpha * a for alpha, a in zip(alphas, annotations, strict=True))
        affine = (
            from_hidden
            + model.word_to_gates.weight @ embedded
            + model.context_to_gates.weight @ context
        )
        i, f, o, g = affine[:3], affine[3:6], affine[6:9], affine[9:]
        cell = sigmoid(f) * cell + sigmoid(i) * tanh(g)
        hidden = sigmoid(o) * tanh(cell)
        logits = model.output(
            tanh(embedded + model.state_to_output(hidden) + model.context_to_output(context))
        )
        torch.testing.assert_close(unrolled.logits[0, 0, t], logits)
        torch.testing.assert_close(unrolled.attention[0, 0, t, :3], torch.stack(alphas))
        torch.testing.assert_close(unrolled.signals["beta"][0, 0, t], beta.squeeze())


def test_a_fresh_model_remembers_and_has_orthogonal_recurrences(model):
    query_and_beta, i, f, o, g = model.from_hidden.bias.split([7, 3, 3, 3, 3])
    assert (f == 1).all()
    assert (torch.cat([query_and_beta, i, o, g]) == 0).all()
    for gate in model.from_hidden.weight[7:].chunk(4):
        torch.testing.assert_close(gate @ gate.T, torch.eye(3).double(), rtol=0, atol=1e-6)


def test_dropout_is_on_in_training_only(model, regions):
    tokens = torch.tensor([[[1, 5]]])
    assert not torch.equal(
        model.train()(regions, tokens).logits, model.train()(regions, tokens).logits
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"state_width": 0},
            "model: word_width, state_width and attention_width must be at least 1",
        ),
        ({"region_width": -1}, "model: region_width must be at least 1, or 0 for no projection"),
        ({"dropout": 1.0}, "model: dropout must be from 0 to below 1, not 1.0"),
    ],
)
def test_sizes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError) as error:
        SoftAttentionConfig(**options)
    assert str(error.value) == message
