"""Gradients against their definitions; occlusion against hiding by hand."""

import pytest
import torch
from torch.nn import functional

import sightline
from sightline.explain import backward
from sightline.explain.gradients import (
    grad_cam,
    gradient_input,
    guided_backpropagation,
    guided_grad_cam,
)
from sightline.explain.lrp.method import lrp
from sightline.explain.occlusion import occlusion
from sightline.explain.targets import Targets
from sightline.regions import Regions
from sightline.text.vocabulary import UNKNOWN
from tiny_models import CASES, REGION_DIM, create


def make(name="spatial_transformer", variant=0):
    torch.manual_seed(0)
    mask = torch.tensor([[True, True, False, True, True]])
    regions = Regions(torch.randn(1, 5, REGION_DIM).double(), mask, torch.rand(1, 5, 4).double())
    tokens = torch.tensor([[[1, 7, 4, 9]]])
    return Targets(create(name, variant), regions, tokens, torch.tensor([[2]]), torch.tensor([[6]]))


def logit(targets, vectors=None, mask=None, tokens=None):
    own = targets.regions
    regions = Regions(
        own.vectors if vectors is None else vectors, own.mask if mask is None else mask, own.boxes
    )
    tokens = targets.tokens if tokens is None else tokens
    return targets.model(regions, tokens).logits[0, 0, 2, 6]


@pytest.mark.parametrize("name", ["spatial_transformer", "soft_attention", "adaptive_attention"])
def test_gradients_are_those_of_the_logit(name):
    targets = make(name)
    vectors = targets.regions.vectors.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(logit(targets, vectors), vectors)
    gradient, vectors = gradient[0], vectors.detach()[0]
    torch.testing.assert_close(gradient_input(targets).regions[0, 0], (gradient * vectors).sum(-1))
    torch.testing.assert_close(
        guided_backpropagation(targets, signed=True).regions[0, 0], gradient.sum(-1)
    )
    if name != "spatial_transformer":
        torch.testing.assert_close(grad_cam(targets).regions[0, 0], cam(targets, vectors, gradient))


def cam(targets, vectors, gradient):
    there = targets.regions.mask[0]
    return (vectors @ gradient[there].mean(0)) * there


NO_ENCODER = ("transformer", 2)
TRANSFORMERS = [case for case in CASES if "transformer" in case[0] and case != NO_ENCODER]


@pytest.mark.parametrize("case", TRANSFORMERS, ids=str)
def test_grad_cam_of_a_transformer_is_taken_after_the_last_norm_of_its_encoder(case):
    """Memory is a linear map of those regions; before them, region and gradient are orthogonal."""
    targets = make(*case)
    model = targets.model
    norm = model.norm
    if model.config.layer.norm == "post":
        norm = model.encoder[-1].around_feed_forward.norm
    outputs = []
    hook = norm.register_forward_hook(lambda module, given, output: outputs.append(output))
    (gradient,) = torch.autograd.grad(logit(targets), outputs)
    hook.remove()
    expected = cam(targets, outputs[0].detach()[0], gradient[0])
    torch.testing.assert_close(grad_cam(targets).regions[0, 0], expected)
    assert expected.abs().sum() > 1e-3


def test_grad_cam_of_a_transformer_without_an_encoder_is_of_the_regions_it_is_given():
    targets = make(*NO_ENCODER)
    assert not targets.model.encoder
    vectors = targets.regions.vectors.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(logit(targets, vectors), vectors)
    expected = cam(targets, vectors.detach()[0], gradient[0])
    torch.testing.assert_close(grad_cam(targets).regions[0, 0], expected)


def test_of_words_it_is_the_gradient_of_their_vectors():
    targets = make("soft_attention")
    embedding = targets.model.embedding
    embedding.requires_grad_()
    (gradient,) = torch.autograd.grad(logit(targets), embedding.weight)
    rows = targets.tokens[0, 0]
    expected = gradient[rows].sum(-1)
    expected[3] = 0  # after the place
    torch.testing.assert_close(grad_cam(targets).words[0, 0], expected)
    product = (gradient * embedding.weight.detach())[rows].sum(-1)
    product[3] = 0
    torch.testing.assert_close(gradient_input(targets).words[0, 0], product)


@pytest.mark.parametrize("method", [gradient_input, lrp])
def test_a_long_text_is_explained_some_words_at_a_time(method, monkeypatch):
    """All at once, a text of a thousand words would take tens of gigabytes."""
    one = make("soft_attention")
    places, words = torch.tensor([[0, 1, 2, 3, 2]]), torch.tensor([[7, 4, 9, 5, 6]])
    targets = Targets(one.model, one.regions, one.tokens, places, words)
    whole = method(targets)
    monkeypatch.setattr(backward, "AT_ONCE", 2)
    passes = []
    original = torch.autograd.grad
    monkeypatch.setattr(
        torch.autograd, "grad", lambda *args, **kw: passes.append(1) or original(*args, **kw)
    )
    parts = method(targets)
    assert len(passes) == 3
    torch.testing.assert_close(parts.regions, whole.regions, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts.words, whole.words, rtol=1e-12, atol=1e-12)


def test_occlusion_is_what_the_logit_loses():
    targets = make()
    found = occlusion(targets, batch=2)
    for region in (0, 4):
        mask = targets.regions.mask.clone()
        mask[0, region] = False
        fall = logit(targets) - logit(targets, mask=mask)
        torch.testing.assert_close(found.regions[0, 0, region], fall)
    assert found.regions[0, 0, 2] == 0
    tokens = targets.tokens.clone()
    tokens[0, 0, 1] = UNKNOWN
    torch.testing.assert_close(found.words[0, 0, 1], logit(targets) - logit(targets, tokens=tokens))
    assert found.words[0, 0, 3] == 0


def test_how_far_occlusion_is(monkeypatch, capsys):
    occlusion(make(), batch=2)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sightline.explain.occlusion.PATIENCE", 0)
    occlusion(make(), batch=2)
    assert "5/5" in capsys.readouterr().err


def test_the_only_region_is_hidden_as_nothing():
    targets = make()
    one = Targets(
        targets.model,
        Regions(
            targets.regions.vectors,
            torch.tensor([[False, True, False, False, False]]),
            targets.regions.boxes,
        ),
        targets.tokens,
        targets.places,
        targets.words,
    )
    found = occlusion(one).regions[0, 0]
    assert found.isfinite().all()
    assert found.nonzero().flatten().tolist() == [1]


@pytest.fixture(scope="module")
def pictured(checkpoint, examples):
    """A word of a photograph, with the encoder's input of 64 x 64 pixels and its 4 x 4 regions."""
    captioner = sightline.load(checkpoint)
    pixels = torch.from_numpy(captioner.encoder.preprocessing.load(examples / "cat.jpg")[0])[None]
    regions = captioner.encoder(pixels, torch.tensor([[0.0, 0.0, 1.0, 1.0]]))
    x = captioner.encoder.normalise(pixels)
    question = torch.tensor([[1]]), torch.tensor([[7]])
    return Targets(
        captioner.model, regions, torch.tensor([[[1, 4]]]), *question, captioner.encoder, x
    )


def through(pictured, x):
    """The logit asked for, of the encoder's input."""
    vectors = pictured.encoder.features(x).flatten(2).transpose(1, 2)
    regions = Regions(vectors, pictured.regions.mask, pictured.regions.boxes)
    return pictured.model(regions, pictured.tokens).logits[0, 0, 1, 7]


def test_of_pixels_it_is_the_gradient_through_the_encoder(pictured):
    x = pictured.x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(through(pictured, x), x)
    expected = (gradient * pictured.x)[0].sum(0)
    torch.testing.assert_close(gradient_input(pictured).pixels[0, 0], expected)


def test_rectifiers_of_the_encoder_are_guided(pictured, monkeypatch):
    """In place of each rectifier, one that clamps the gradient by a hook."""
    x = pictured.x.clone().requires_grad_()
    plain = functional.relu6

    def guided(z, inplace=False):
        y = plain(z)
        y.register_hook(lambda c: c.clamp(min=0))
        return y

    monkeypatch.setattr("sightline.encoders.activations.F.relu6", guided)
    (gradient,) = torch.autograd.grad(through(pictured, x), x)
    monkeypatch.undo()
    guided = guided_backpropagation(pictured, signed=True).pixels[0, 0]
    torch.testing.assert_close(guided, gradient[0].sum(0))
    assert (guided < 0).any()
    torch.testing.assert_close(guided_backpropagation(pictured).pixels[0, 0], guided.abs())
    cam = grad_cam(pictured).regions[0, 0].clamp(min=0).view(1, 1, 4, 4)
    weights = functional.interpolate(cam, (64, 64), mode="bilinear")[0, 0] / 256
    torch.testing.assert_close(guided_grad_cam(pictured).pixels[0, 0], (guided * weights).abs())
    signed = guided_grad_cam(pictured, signed=True).pixels[0, 0]
    torch.testing.assert_close(signed, guided * weights)


def test_grad_cam_has_no_steps_between_regions(pictured):
    cam = grad_cam(pictured)
    values = cam.pixels[0, 0]
    assert (values.diff(dim=0).abs().max() < 0.2 * (values.max() - values.min())).all()
    expected = cam.regions[0, 0].view(4, 4)[1:3, 1:3].mean() / 256  # between four centres
    torch.testing.assert_close(values[31:33, 31:33].mean(), expected)


def test_a_hidden_cell_is_painted_over_and_encoded_anew(pictured):
    x = pictured.x.clone()
    x[:, :, 16:32, 32:48] = x.mean((2, 3), keepdim=True)
    fall = through(pictured, pictured.x) - through(pictured, x)
    torch.testing.assert_close(
        occlusion(pictured).regions[0, 0, 6], fall.detach(), rtol=1e-3, atol=1e-5
    )
