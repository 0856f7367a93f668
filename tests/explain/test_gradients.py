"""Gradients against their definitions; occlusion against hiding by hand."""

import torch

from sightline.data.vocabulary import UNKNOWN
from sightline.encoders.regions import Regions
from sightline.explain.gradients import grad_cam, gradient_input, guided_backpropagation
from sightline.explain.occlusion import occlusion
from sightline.explain.subject import Subject
from tiny_models import REGION_DIM, create


def make(name="spatial_transformer"):
    torch.manual_seed(0)
    mask = torch.tensor([[True, True, False, True, True]])
    regions = Regions(torch.randn(1, 5, REGION_DIM).double(), mask, torch.rand(1, 5, 4).double())
    tokens = torch.tensor([[[1, 7, 4, 9]]])
    return Subject(create(name, 0), regions, tokens, torch.tensor([[2]]), torch.tensor([[6]]))


def logit(subject, vectors=None, mask=None, tokens=None):
    own = subject.regions
    regions = Regions(
        own.vectors if vectors is None else vectors, own.mask if mask is None else mask, own.boxes
    )
    tokens = subject.tokens if tokens is None else tokens
    return subject.model(regions, tokens).logits[0, 0, 2, 6]


def test_gradients_are_those_of_the_logit():
    subject = make()
    vectors = subject.regions.vectors.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(logit(subject, vectors), vectors)
    gradient, vectors = gradient[0], vectors.detach()[0]
    torch.testing.assert_close(gradient_input(subject).regions[0, 0], (gradient * vectors).sum(-1))
    torch.testing.assert_close(guided_backpropagation(subject).regions[0, 0], gradient.sum(-1))
    there = subject.regions.mask[0]
    cam = (vectors @ gradient[there].mean(0)) * there
    torch.testing.assert_close(grad_cam(subject).regions[0, 0], cam)


def test_of_words_it_is_the_gradient_of_their_vectors():
    subject = make("soft_attention")
    embedding = subject.model.embedding
    embedding.requires_grad_()
    (gradient,) = torch.autograd.grad(logit(subject), embedding.weight)
    rows = subject.tokens[0, 0]
    expected = gradient[rows].sum(-1)
    expected[3] = 0  # after the place
    torch.testing.assert_close(grad_cam(subject).words[0, 0], expected)
    product = (gradient * embedding.weight.detach())[rows].sum(-1)
    product[3] = 0
    torch.testing.assert_close(gradient_input(subject).words[0, 0], product)


def test_occlusion_is_what_the_logit_loses():
    subject = make()
    found = occlusion(subject, batch=2)
    for region in (0, 4):
        mask = subject.regions.mask.clone()
        mask[0, region] = False
        fall = logit(subject) - logit(subject, mask=mask)
        torch.testing.assert_close(found.regions[0, 0, region], fall)
    assert found.regions[0, 0, 2] == 0
    tokens = subject.tokens.clone()
    tokens[0, 0, 1] = UNKNOWN
    torch.testing.assert_close(found.words[0, 0, 1], logit(subject) - logit(subject, tokens=tokens))
    assert found.words[0, 0, 3] == 0


def test_the_only_region_is_hidden_as_nothing():
    subject = make()
    one = Subject(
        subject.model,
        Regions(
            subject.regions.vectors,
            torch.tensor([[False, True, False, False, False]]),
            subject.regions.boxes,
        ),
        subject.tokens,
        subject.places,
        subject.words,
    )
    found = occlusion(one).regions[0, 0]
    assert found.isfinite().all()
    assert found.nonzero().flatten().tolist() == [1]
