"""LRP-inference: weights are what LRP says, support always helps, and nothing else changes."""

import pytest
import torch
from torch.nn import functional

from sightline.decoding.words import with_start
from sightline.errors import ConfigError
from sightline.explain.lrp.method import lrp
from sightline.explain.targets import Targets
from sightline.regions import Regions
from sightline.text.vocabulary import END, PAD, Vocabulary
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.cross_entropy import negative_log_likelihood
from sightline.training.objectives.lrp_inference import (
    LastLinear,
    LRPInferenceOptions,
    counterweights,
    feature_evidence,
    picture_support,
    weigh_logits,
)
from sightline.training.objectives.registry import create_objective
from tiny_models import CASES, REGION_DIM, create

CONTENT = ("dog", "cat", "cup", "red", "sits", "runs", "green")
STOP = ("a", "the", "of", "on", "is", "and", "with")
PAPER_FORMS = ("logit", "feature")
FORMS = (*PAPER_FORMS, "counterweight")


def make_batch(weight=1.0):
    """Two pictures, one with fewer regions; captions of several lengths, and one missing."""
    torch.manual_seed(1)
    targets = torch.tensor([[[5, 6, 9, END], [7, END, PAD, PAD]], [[8, 4, END, PAD], [PAD] * 4]])
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    vectors = torch.randn(2, 5, REGION_DIM).double()
    regions = Regions(vectors, mask, torch.rand(2, 5, 4))
    return CaptionBatch(regions, with_start(targets), targets, weight)


def make_objective(form="logit", words=CONTENT, **options):
    objective = create_objective({"name": "lrp_inference", "form": form, **options})
    objective.prepare([], Vocabulary(words))
    return objective


def loss_of(terms):
    return sum(term.weight * term.total for term in terms.values() if term.weight)


def gradient_of(loss, model):
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return torch.cat([g.flatten() for g in found if g is not None])


def prefer(model, words):
    """Make some words, and none else, what the captioner predicts."""
    with torch.no_grad():
        model.output.bias[:] = -30.0
        model.output.bias[words] = 0.0


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_support_is_of_the_relevance_that_lrp_gives(name, variant):
    """Its mean when normalised, or its part of all; of all captions in one pass, and of each."""
    model, batch = create(name, variant).train(), make_batch()
    words = torch.randint(4, 11, batch.targets.shape, generator=torch.manual_seed(0))
    explained = (batch.targets != PAD) & (words != 7)
    assert explained.sum() < (batch.targets != PAD).sum()
    state = torch.get_rng_state()
    support = picture_support(model, batch.regions, batch.inputs, words, explained)
    part = picture_support(model, batch.regions, batch.inputs, words, explained, of="total")
    assert torch.equal(torch.get_rng_state(), state)  # no dropout
    assert model.training
    assert not support.requires_grad
    assert not support[~explained].any()
    assert not part[~explained].any()
    model.eval()
    for b, k, t in explained.nonzero().tolist():
        place, word = torch.tensor([[t]]), words[b, k, t].view(1, 1)
        caption = batch.inputs[b, k, : t + 1].view(1, 1, -1)
        relevance = lrp(Targets(model, batch.regions[b : b + 1], caption, place, word))
        of_regions = relevance.regions[0, 0, batch.regions.mask[b]]
        expected = (of_regions / of_regions.abs().max()).mean()
        torch.testing.assert_close(support[b, k, t], expected)
        total = of_regions.abs().sum() + relevance.words.abs().sum()
        torch.testing.assert_close(part[b, k, t], of_regions.sum() / total)


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_the_last_linear_map_makes_the_logits(name, variant):
    model, batch = create(name, variant), make_batch()
    with LastLinear() as last:
        logits = model(batch.regions, batch.inputs).logits
    torch.testing.assert_close(functional.linear(last.x, last.weight, last.bias), logits)


@pytest.mark.parametrize("logit", [3.0, -3.0])
def test_less_support_is_less_probability_whatever_the_sign_of_the_logit(logit):
    supports = torch.linspace(-1, 1, 9)
    logits = torch.tensor([0.5, logit, -1.0]).expand(9, -1)
    weighed = weigh_logits(logits, torch.ones(9, dtype=torch.long), supports)
    chances = weighed.softmax(-1)[:, 1]
    assert (chances.diff() > 0).all()
    torch.testing.assert_close(weighed[4], logits[0])
    assert torch.equal(weighed[:, [0, 2]], logits[:, [0, 2]])
    if logit > 0:  # eq. 10-11 as printed
        torch.testing.assert_close(weighed[:, 1], (1 + supports) * logit)


@pytest.mark.parametrize("shift", [4.0, -4.0])
@pytest.mark.parametrize("support", [0.3, -0.3])
def test_a_word_said_as_often_as_it_is_true_is_taught_down_by_support(support, shift):
    """Weights are there in training only, and the captioner makes up for them (see papers.md)."""
    truth = torch.tensor([0.6, 0.3, 0.1])
    logits = (truth.log() + shift).requires_grad_()
    weighed = weigh_logits(logits, torch.tensor(0), torch.tensor(support))
    functional.cross_entropy(weighed, truth).backward()
    step = -logits.grad[0]
    assert step * support < 0
    assert step.abs() > 0.01


@pytest.mark.parametrize("shift", [4.0, -4.0])
def test_counterweights_teach_that_less_support_is_less_probability(shift):
    """The same word as often true in either place, with and without support."""
    truth = torch.tensor([[0.6, 0.3, 0.1]]).expand(2, -1)
    logits = (truth.log() + shift).requires_grad_()
    weights = counterweights(torch.tensor([0.4, 0.2]), torch.tensor([True, True]), strength=3.0)
    torch.testing.assert_close(weights, torch.tensor([-0.3, 0.3]))
    weighed = weigh_logits(logits, torch.tensor([0, 0]), weights)
    functional.cross_entropy(weighed, truth, reduction="sum").backward()
    supported, unsupported = (-logits.grad[:, 0]).tolist()
    assert supported > 0.01
    assert unsupported < -0.01


def test_counterweights_are_around_the_mean_of_explained_words_and_at_most_one():
    support = torch.tensor([[0.5, 9.0, -0.5], [0.0, 9.0, 9.0]])
    explained = support < 9
    weights = counterweights(support, explained, strength=4.0)
    assert weights.tolist() == [[-1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    assert not counterweights(support, explained & False, strength=4.0).any()


@pytest.mark.parametrize("form", FORMS)
def test_where_nothing_is_explained_it_is_cross_entropy(form):
    """All words are stop words: every weight is one."""
    model, batch = create("grid_td", 0), make_batch()
    terms = make_objective(form, STOP).terms(model, batch, 0)
    plain = create_objective({"name": "cross_entropy"}).terms(model, batch, 0)
    assert terms["explained"].total == 0
    assert torch.equal(terms["inferred"].total, plain["nll"].total)
    torch.testing.assert_close(loss_of(terms), loss_of(plain))
    expected = gradient_of(loss_of(plain), model)
    torch.testing.assert_close(gradient_of(loss_of(terms), model), expected)


@pytest.mark.parametrize("form", FORMS)
def test_stop_words_and_special_words_are_left_alone(form):
    model, batch = create("adaptive_attention", 0), make_batch()
    objective = make_objective(form, ("dog", "of", *CONTENT[2:]))
    for word, touched in ((5, False), (END, False), (4, True)):
        prefer(model, [word])
        terms = objective.terms(model, batch, 0)
        explained = int((batch.targets != PAD).sum()) if touched else 0
        assert terms["explained"].total == explained
        assert torch.equal(terms["inferred"].total, terms["nll"].total) != touched


@pytest.mark.parametrize(
    ("form", "likelihood"), [("logit", 0.0), ("logit", 0.3), ("counterweight", 0.3)]
)
def test_the_loss_mixes_both_likelihoods_and_weights_are_constants(form, likelihood):
    """Its gradient is that of a loss whose weights were worked out beforehand (eq. 12)."""
    model, batch = create("grid_td", 0), make_batch()
    prefer(model, [4, 6, 8])
    said = batch.targets != PAD
    terms = make_objective(form, likelihood=likelihood).terms(model, batch, 0)
    found = gradient_of(loss_of(terms), model)

    unrolled = model(batch.regions, batch.inputs)
    words = unrolled.logits.argmax(-1)
    given = (model, batch.regions, batch.inputs, words, said)
    if form == "logit":
        support = picture_support(*given)
    else:
        support = counterweights(
            picture_support(*given, of="total"), said, LRPInferenceOptions.strength
        )
    assert support[said].abs().min() > 0.01
    weighed = unrolled.logits + functional.one_hot(words, 11) * (
        support[..., None] * unrolled.logits.abs()
    )
    own, inferred = (
        negative_log_likelihood(unrolled._replace(logits=logits), batch).sum()
        for logits in (unrolled.logits, weighed)
    )
    loss = likelihood * own + (1 - likelihood) * inferred
    torch.testing.assert_close(loss_of(terms), loss)
    torch.testing.assert_close(found, gradient_of(loss, model))


def test_features_are_weighed_by_what_they_say_for_the_word():
    model, batch = create("grid_td", 0), make_batch()
    prefer(model, [5])
    terms = make_objective("feature", likelihood=0.0).terms(model, batch, 0)
    with LastLinear() as last:
        unrolled = model(batch.regions, batch.inputs)
    relevance = last.x * last.weight[5]  # ω = 1 + R / max |R|
    omega = 1 + (relevance / relevance.abs().amax(-1, keepdim=True)).detach()
    unrolled = unrolled._replace(logits=model.output(omega * last.x))
    expected = negative_log_likelihood(unrolled, batch).sum()
    torch.testing.assert_close(terms["inferred"].total, expected)
    found = gradient_of(loss_of(terms), model)
    torch.testing.assert_close(found, gradient_of(expected, model))


def test_the_epsilon_rule_gives_the_features_of_the_last_layer_the_same_weights():
    """Whatever ε: it takes the same share of every feature."""
    torch.manual_seed(0)
    x, weight = torch.randn(1, 6).double(), torch.randn(3, 6).double()
    z = x @ weight[1]
    for epsilon in (0.0, 0.01, 1.0):
        by_rule = x * weight[1] / (z + epsilon * z.sign()) * z
        evidence = feature_evidence(x, weight, torch.tensor([1]), torch.tensor([True]))
        torch.testing.assert_close(evidence, by_rule / by_rule.abs().max())


@pytest.mark.parametrize("form", FORMS)
def test_what_is_reported_is_of_the_explained_words(form):
    model, batch = create("adaptive_attention", 0), make_batch()
    prefer(model, range(4, 11))
    said = batch.targets != PAD
    words = model(batch.regions, batch.inputs).logits.argmax(-1)
    often = int(words[said].mode().values)
    known = [*CONTENT[: often - 4], "of", *CONTENT[often - 3 :]]
    explained = said & (words != often)
    terms = make_objective(form, known).terms(model, batch, 0)
    if form != "feature":
        of = "largest" if form == "logit" else "total"
        support = picture_support(model, batch.regions, batch.inputs, words, explained, of)
    else:
        with LastLinear() as last:
            model(batch.regions, batch.inputs)
        support = feature_evidence(last.x, last.weight, words, explained).mean(-1)
    support = support[explained]
    assert 0 < len(support) < batch.tokens
    reported = {
        name: float(terms[name].total / batch.tokens)
        for name in ("explained", "support", "opposed")
    }
    assert reported["explained"] == pytest.approx(len(support) / int(batch.tokens))
    assert reported["support"] == pytest.approx(float(support.mean()))
    assert reported["opposed"] == pytest.approx(float((support < 0).double().mean()))
    assert all(terms[name].weight == 0 for name in reported)


@pytest.mark.parametrize("form", FORMS)
def test_a_stand_in_weighs_nothing(form):
    terms = make_objective(form).terms(create("grid_td", 0), make_batch(0.0), 0)
    assert all(float(term.total.detach()) == 0 for term in terms.values())


@pytest.mark.parametrize("form", PAPER_FORMS)
def test_parts_of_a_batch_add_up(form, monkeypatch):
    """So processes may share one; and captions are explained in as many passes as memory asks."""
    model, batch, objective = create("grid_td", 0), make_batch(), make_objective(form)
    prefer(model, range(4, 11))
    whole = objective.terms(model, batch, 0)
    monkeypatch.setattr("sightline.training.objectives.lrp_inference.CAPTIONS", 1)
    parts = [
        objective.terms(model, CaptionBatch(batch.regions[b], batch.inputs[b], batch.targets[b]), 0)
        for b in (torch.tensor([0]), torch.tensor([1]))
    ]
    for name in ("nll", "inferred", "explained"):
        torch.testing.assert_close(sum(part[name].total for part in parts), whole[name].total)
    gradients = [gradient_of(loss_of(part), model) for part in parts]
    torch.testing.assert_close(sum(gradients), gradient_of(loss_of(whole), model))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "logits"}, "must be one of logit, feature, counterweight"),
        ({"likelihood": 1.5}, "objective.likelihood: must be at most 1"),
        ({"strength": -1}, "objective.strength: must be at least 0, not -1"),
        ({"likelihood": -1}, "objective.likelihood: must be at least 0, not -1"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(ConfigError, match=message):
        create_objective({"name": "lrp_inference", **options})
