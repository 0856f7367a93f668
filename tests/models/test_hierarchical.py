from dataclasses import replace

import pytest
import torch

from sightline.errors import ConfigError
from sightline.models.hierarchical import (
    Hierarchical,
    HierarchicalConfig,
    goal_collapse,
    goals_of,
)
from sightline.regions import Regions
from sightline.text.vocabulary import END, START

CONFIG = HierarchicalConfig(
    region_width=5,
    word_width=4,
    worker_width=3,
    manager_width=4,
    goal_width=6,
    attention_width=6,
    discriminator_width=8,
    dropout=0.5,
)


def create(config=CONFIG):
    torch.manual_seed(0)
    return Hierarchical(9, 7, config).double().eval()


@pytest.fixture
def model():
    model = create()
    with torch.no_grad():  # biases and all
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) / 4)
    return model


@pytest.fixture
def regions():
    torch.manual_seed(1)
    mask = torch.tensor([[True, True, True, False]])
    return Regions(torch.randn(1, 4, 7).double(), mask, torch.zeros(1, 4, 4))


def unit(layer, x, z, cell):
    """The printed equations of an SRU, for vectors."""
    width = len(cell)
    weight, concatenated = layer.from_language.weight, x
    if z is not None:
        weight = torch.cat([weight, layer.from_image.weight], 1)
        concatenated = torch.cat([x, z])
    w_f, w_r, w, w_h = weight.split(width)
    b_f, b_r = layer.gate_bias.split(width)
    f = torch.sigmoid(w_f @ concatenated + b_f)
    r = torch.sigmoid(w_r @ concatenated + b_r)
    cell = f * cell + (1 - f) * (w @ concatenated)
    return r * torch.tanh(cell) + (1 - r) * (w_h @ concatenated), cell


def test_a_step_is_the_papers_equations(model, regions):
    """Region by region, written out for one picture (paper 2, sections 3.4, 3.5 and 4.3)."""
    given = (START, 5, 7)
    annotations = [model.project(vector) for vector in regions.vectors[0][:3]]
    unrolled = model(regions, torch.tensor([[given]]))
    extractor = [torch.zeros(8).double() for _ in range(3)]
    manager, worker = torch.zeros(4).double(), torch.zeros(3).double()
    alphas, beta = torch.full((3,), 1 / 3).double(), torch.ones(1).double()
    for t, word in enumerate(given):
        # Before the first word, the context is the mean annotation.
        context = beta * sum(alpha * a for alpha, a in zip(alphas, annotations, strict=True))
        leaked = model.discriminator.embedding.weight[word]
        for number, layer in enumerate(model.discriminator.extractor):
            leaked, extractor[number] = unit(layer, leaked, None, extractor[number])
        plan, manager = unit(model.manager, leaked, None, manager)
        hidden, worker = unit(model.worker, model.embedding.weight[word], context, worker)
        goal = (
            model.manager_to_goal.weight @ plan
            + model.manager_to_goal.bias
            + model.context_to_goal.weight @ context
        )
        goal = goal / goal.square().sum().sqrt()
        known = hidden + model.context_to_output.weight @ context
        words = model.output.weight.view(9, 6, 3) @ known  # a vector of six for every word
        torch.testing.assert_close(unrolled.logits[0, 0, t], words @ goal)
        torch.testing.assert_close(unrolled.attention[0, 0, t, :3], alphas)
        torch.testing.assert_close(unrolled.signals["beta"][0, 0, t], beta.squeeze())
        torch.testing.assert_close(goals_of(unrolled.signals)[0, 0, t], goal)
        # Where to look for the next word.
        query = model.from_worker.weight[:6] @ hidden + model.from_worker.bias[:6]
        energies = [model.score @ torch.relu(model.key.weight @ a + query) for a in annotations]
        total = sum(energy.exp() for energy in energies)
        alphas = torch.stack([energy.exp() / total for energy in energies])
        beta = torch.sigmoid(model.from_worker.weight[6:] @ hidden + model.from_worker.bias[6:])


def gradients(model, value):
    parameters = dict(model.named_parameters())
    grads = torch.autograd.grad(value, list(parameters.values()), allow_unused=True)
    return {name for name, g in zip(parameters, grads, strict=True) if g is not None and g.any()}


@pytest.mark.parametrize("sees", [False, True])
def test_neither_trains_the_other(regions, sees):
    model = create(replace(CONFIG, discriminator_sees_picture=sees))
    tokens = torch.tensor([[[START, 5, 7, END]]])
    unrolled, verdicts, _ = model(regions, tokens, tokens)
    names = {name for name, _ in model.named_parameters()}
    of_discriminator = {name for name in names if name.startswith("discriminator.")}
    assert gradients(model, unrolled.logits.square().sum()) == names - of_discriminator
    assert gradients(model, verdicts.sum()) == of_discriminator


def test_the_attention_sends_no_gradient_into_the_language_model(model, regions):
    memory = model.encode(regions)
    features = torch.randn(1, 2, 3).double().requires_grad_()
    context, attention, beta = model._look(features, memory)
    loss = context.sum() + attention.square().sum() + beta.sum()
    reached = gradients(model, loss)
    assert reached == {
        "score",
        "project.weight",
        "project.bias",
        "key.weight",
        "from_worker.weight",
        "from_worker.bias",
    }
    assert torch.autograd.grad(
        model._look(features, memory)[0].sum(), features, allow_unused=True
    ) == (None,)


def test_the_picture_is_leaked_to_the_manager_if_the_discriminator_sees_it(regions):
    model = create(replace(CONFIG, discriminator_sees_picture=True))
    memory = model.encode(regions)
    mean = regions.vectors[:, :3].mean(1)
    torch.testing.assert_close(memory["picture"], mean / mean.norm(dim=1, keepdim=True))
    assert "picture" not in create().encode(regions)
    tokens = torch.tensor([[[START, 5, 7]]])
    other = {**memory, "picture": memory["picture"] + 1}
    goals, others = (goals_of(model.unroll(tokens, m).signals) for m in (memory, other))
    assert (goals - others).abs().min() > 1e-9


def test_goals_have_length_one(model, regions):
    goals = goals_of(model(regions, torch.tensor([[[START, 5, 7], [START, 8, 6]]])).signals)
    assert goals.shape == (1, 2, 3, 6)
    torch.testing.assert_close(goals.norm(dim=-1), torch.ones(1, 2, 3).double())


def test_goal_collapse_is_the_mean_cosine_of_pairs():
    torch.manual_seed(2)
    goals = torch.nn.functional.normalize(torch.randn(2, 5, 6).double(), 2, -1)
    said = torch.tensor([[True] * 4 + [False], [True] + [False] * 4])
    pairs = [float(goals[0, i] @ goals[0, j]) for i in range(4) for j in range(i)]
    collapse = goal_collapse(goals, said)
    assert collapse.tolist() == pytest.approx([sum(pairs) / 6, 0.0])
    same = goals[:, :1].expand(2, 5, 6)
    assert goal_collapse(same, said)[0].item() == pytest.approx(1.0)


def test_a_fresh_model_is_orthogonal_where_it_recurs_and_xavier_elsewhere():
    model = Hierarchical(50, 40, HierarchicalConfig(region_width=30, attention_width=20))
    judges = list(model.discriminator.extractor)
    for layer in (model.manager, model.worker, *judges):
        forget, reset = layer.gate_bias.chunk(2)
        assert (forget == (layer in judges)).all()  # the discriminator remembers from the start
        assert (reset == 0).all()
        rows = layer.from_language.weight
        if layer.from_image is not None:
            rows = torch.cat([rows, layer.from_image.weight], 1)
        for matrix in rows.chunk(4):
            torch.testing.assert_close(matrix @ matrix.T, torch.eye(256), rtol=0, atol=1e-4)
    for matrix in (
        model.project.weight,
        model.manager_to_goal.weight,
        model.context_to_goal.weight,
        model.embedding.weight,
        model.key.weight,
        model.from_worker.weight[:20],
        model.from_worker.weight[20:],
        model.context_to_output.weight,
        model.output.weight,
        model.discriminator.aspect.weight,
        model.discriminator.verdict.weight,
    ):
        bound = (6 / sum(matrix.shape)) ** 0.5
        assert 0.6 * bound < matrix.abs().max() <= bound
    assert 0.9 < model.discriminator.embedding.weight.std() < 1.1
    assert 0.006 < model.score.abs().max() <= 0.01  # it looks everywhere at first
    for bias in (model.project.bias, model.manager_to_goal.bias, model.from_worker.bias):
        assert (bias == 0).all()


def test_dropout_is_on_in_training_only(model, regions):
    tokens = torch.tensor([[[START, 5]]])
    first, second = (model.train()(regions, tokens).logits for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal_width": 0}, "model.goal_width: must be at least 1, not 0"),
        ({"region_width": -1}, "model.region_width: must be at least 0, not -1"),
        ({"dropout": 1.0}, "model: dropout must be from 0 to below 1, not 1.0"),
    ],
)
def test_sizes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError) as error:
        replace(CONFIG, **options)
    assert str(error.value) == message
