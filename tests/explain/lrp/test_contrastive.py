"""Contrastive LRP: its numbers by hand, its sums, and the words it asks."""

from dataclasses import replace

import pytest
import torch

import sightline
from sightline.explain.attention import attention
from sightline.explain.lrp.contrastive import (
    _accent,
    _average,
    _common,
    _spread,
    contrastive_lrp,
)
from sightline.explain.lrp.method import lrp
from sightline.explain.lrp.mode import LRPMode
from sightline.explain.targets import Targets


@pytest.fixture(scope="module")
def pictured(checkpoint, examples):
    """Three words of a photograph, of 64 x 64 pixels and 4 x 4 regions; two are at one place."""
    captioner = sightline.load(checkpoint)
    pixels = torch.from_numpy(captioner.encoder.preprocessing.load(examples / "cat.jpg")[0])[None]
    regions = captioner.encoder(pixels, torch.tensor([[0.0, 0.0, 1.0, 1.0]]))
    return Targets(
        captioner.model,
        regions,
        torch.tensor([[[1, 4, 9, 5]]]),
        torch.tensor([[0, 2, 2]]),
        torch.tensor([[4, 9, 7]]),
        captioner.encoder,
        captioner.encoder.normalise(pixels),
    )


@pytest.fixture
def nothing_in_common(monkeypatch):
    monkeypatch.setattr("sightline.explain.lrp.contrastive.COMMON", 0.0)


def test_the_map_adds_up_to_what_previous_words_do_not_claim(pictured):
    plain, contrastive = lrp(pictured), contrastive_lrp(pictured)
    for name in ("total", "regions", "words", "bias", "epsilon"):
        torch.testing.assert_close(getattr(contrastive, name), getattr(plain, name))
    shown = contrastive.pixels.sum((2, 3))
    torch.testing.assert_close(shown + contrastive.encoder, plain.regions.sum(-1))
    # Nobody comes before the first word: all of the regions' relevance is shown.
    torch.testing.assert_close(shown[0, 0], plain.regions[0, 0].sum())
    supporting = plain.regions[0].clamp(min=0)
    said = replace(pictured, places=torch.tensor([[0, 1]]), words=torch.tensor([[4, 9]]))
    evidence = [
        lrp(words).regions[0].clamp(min=0) * attention(words).regions[0]
        for words in (pictured, said)
    ]
    shares = [part / part.sum(-1, keepdim=True) for part in evidence]
    for n, asked in ((1, [0]), (2, [0, 1])):  # a word is not contrasted with itself
        claimed = supporting[n] * shares[0][n] / (shares[0][n] + shares[1][asked].sum(0))
        expected = claimed.nan_to_num().sum() - (-plain.regions[0, n]).clamp(min=0).sum()
        torch.testing.assert_close(shown[0, n], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("nothing_in_common")
def test_regions_are_weighed_by_evidence_and_the_square_of_the_share(pictured, monkeypatch):
    """The second word, after the first: (E s²)², where no pixel stands out."""
    monkeypatch.setattr("sightline.explain.lrp.contrastive._common", lambda *_: torch.ones(1, 4, 4))
    words = replace(pictured, places=torch.tensor([[0, 2]]), words=torch.tensor([[4, 7]]))
    regions = lrp(words).regions[0]
    first, second = regions.clamp(min=0) * attention(words).regions[0]
    said = replace(pictured, places=torch.tensor([[1]]), words=torch.tensor([[9]]))
    between = lrp(said).regions[0, 0].clamp(min=0) * attention(said).regions[0, 0]
    mine, *theirs = (part / part.sum() for part in (second, first, between))
    share = (mine / (mine + sum(theirs))).nan_to_num()
    weights = (second * share**2) ** 2
    against = (-regions[1]).clamp(min=0) ** 2
    expected = weights / weights.sum() * (regions[1].clamp(min=0) * share).sum()
    expected -= against / against.sum() * (-regions[1]).clamp(min=0).sum()
    shown = contrastive_lrp(words).pixels[0, 1]
    torch.testing.assert_close(shown.flatten(), expected, rtol=1e-4, atol=1e-6)


def test_a_twentieth_of_what_supports_a_word_lies_where_all_words_rest(pictured, monkeypatch):
    def supporting(targets, epsilon):
        relevance = lrp(targets, epsilon)
        return relevance._replace(regions=relevance.regions.abs())

    monkeypatch.setattr("sightline.explain.lrp.contrastive.lrp", supporting)
    shown = contrastive_lrp(pictured).pixels
    monkeypatch.setattr("sightline.explain.lrp.contrastive.COMMON", 0.0)
    own = contrastive_lrp(pictured).pixels
    common = _common(pictured, None)[:, None]
    for_any_word = own.sum((2, 3), keepdim=True) * common / common.sum()
    torch.testing.assert_close(shown, 0.95 * own + 0.05 * for_any_word)


@pytest.mark.usefixtures("nothing_in_common")
def test_a_region_without_relevance_of_its_own_shows_nothing(pictured):
    contrastive = contrastive_lrp(pictured)
    grid = contrastive.regions[0].view(3, 4, 4)
    for n in range(3):
        for row, column in ((grid[n] < 0).nonzero()).tolist():
            centre = contrastive.pixels[
                0, n, 16 * row + 7 : 16 * row + 9, 16 * column + 7 : 16 * column + 9
            ]
            neighbours = grid[n, max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
            if (neighbours < 0).all():
                assert (centre <= 0).all()


def test_later_words_change_nothing_and_words_together_are_words_apart(pictured):
    together = contrastive_lrp(pictured)
    changed = contrastive_lrp(replace(pictured, tokens=torch.tensor([[[1, 4, 9, 8]]])))
    torch.testing.assert_close(together.pixels, changed.pixels)
    for n in range(3):
        alone = replace(
            pictured, places=pictured.places[:, n : n + 1], words=pictured.words[:, n : n + 1]
        )
        torch.testing.assert_close(contrastive_lrp(alone).pixels[0, 0], together.pixels[0, n])


def test_words_that_were_asked_for_are_not_explained_twice(pictured, monkeypatch):
    counts = []

    def counted(targets, epsilon):
        counts.append(targets.words.shape[1])
        return lrp(targets, epsilon)

    monkeypatch.setattr("sightline.explain.lrp.contrastive.lrp", counted)
    whole = replace(
        pictured, places=torch.tensor([[0, 1, 2, 3]]), words=torch.tensor([[4, 9, 5, 8]])
    )
    together = contrastive_lrp(whole).pixels
    last = replace(pictured, places=torch.tensor([[3]]), words=torch.tensor([[8]]))
    torch.testing.assert_close(contrastive_lrp(last).pixels[0, 0], together[0, 3])
    assert counts == [4, 1 + 3]


def test_without_pixels_it_is_lrp(pictured):
    regions = replace(pictured, encoder=None, x=None)
    torch.testing.assert_close(contrastive_lrp(regions).regions, lrp(regions).regions)
    assert contrastive_lrp(regions).pixels is None


def test_neighbours_beyond_the_border_do_not_count():
    maps = torch.arange(12.0).view(1, 3, 4)
    averages = _average(maps, 3, 3)[0]
    assert averages[1, 1] == maps[0, :3, :3].mean()
    assert averages[0, 0] == maps[0, :2, :2].mean()


def test_places_are_weighed_by_the_square_of_their_evidence():
    evidence, total = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[3.0]])
    maps = _spread(torch.ones(1, 8, 16), evidence, total)[0, 0]
    torch.testing.assert_close(maps[:, -1] / maps[:, 0], torch.full((8,), 4.0))
    torch.testing.assert_close(maps.sum(), total[0, 0])


def test_pixels_are_weighed_by_a_power_of_how_much_they_stand_out():
    accent = torch.ones(1, 4, 4)
    accent[0, 1, 2] = 4.0
    maps = _spread(accent, torch.ones(1, 1, 1, 1), torch.ones(1, 1))[0, 0]
    torch.testing.assert_close(maps[1, 2] / maps[3, 3], torch.tensor(8.0))


def test_pixels_stand_out_by_what_the_squares_of_features_rest_on(pictured):
    encoder, x = pictured.encoder, pictured.x.clone().requires_grad_()
    with LRPMode(epsilon=pictured.model.lrp_epsilon):
        features = encoder.vectors(x)
    squares = (features * features.detach()).sum()
    relevance = (torch.autograd.grad(squares, x)[0] * x).sum(1).detach()
    assert (relevance >= 0).all()
    nearby = _average(relevance, 64, 64)  # four of four regions
    expected = relevance / (nearby + 1e-3 * relevance.mean())
    torch.testing.assert_close(_common(pictured, None), relevance)
    torch.testing.assert_close(_accent(relevance, (4, 4)), expected)


@pytest.mark.usefixtures("nothing_in_common")
def test_a_map_is_where_the_captioner_looked(pictured, monkeypatch):
    regions = lrp(pictured).regions[0, 0]
    chosen = int(regions.argmax())
    assert (regions > 0).sum() > 1  # without attention, others would be shown, too

    def at_the_chosen_one(targets):
        weights = torch.zeros(1, targets.words.shape[1], 16)
        weights[..., chosen] = 1.0
        return attention(targets)._replace(regions=weights)

    monkeypatch.setattr("sightline.explain.lrp.contrastive.attention", at_the_chosen_one)
    shown = contrastive_lrp(pictured).pixels[0, 0].clamp(min=0)
    row, column = divmod(chosen, 4)
    # Between the centres of regions the map is interpolated, so it reaches half a region farther.
    rows = slice(max(16 * row - 8, 0), 16 * row + 24)
    columns = slice(max(16 * column - 8, 0), 16 * column + 24)
    torch.testing.assert_close(shown[rows, columns].sum(), shown.sum())
    assert shown.sum() > 0
