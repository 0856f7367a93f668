"""Contrastive LRP: its numbers by hand, its sums, and the words it asks."""

from dataclasses import replace

import pytest
import torch

import sightline
from sightline.explain.lrp.contrastive import _average, _spread, contrastive_lrp
from sightline.explain.lrp.method import lrp
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
    previous = lrp(said).regions[0].clamp(min=0)
    shares = [part / part.sum(-1, keepdim=True) for part in (supporting, previous)]
    for n, asked in ((1, [0]), (2, [0, 1])):  # a word is not contrasted with itself
        claimed = supporting[n] * shares[0][n] / (shares[0][n] + shares[1][asked].sum(0))
        expected = claimed.nan_to_num().sum() - (-plain.regions[0, n]).clamp(min=0).sum()
        torch.testing.assert_close(shown[0, n], expected, rtol=1e-4, atol=1e-5)


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


def test_without_pixels_it_is_lrp(pictured):
    regions = replace(pictured, encoder=None, x=None)
    torch.testing.assert_close(contrastive_lrp(regions).regions, lrp(regions).regions)
    assert contrastive_lrp(regions).pixels is None


def test_neighbours_beyond_the_border_do_not_count():
    maps = torch.arange(12.0).view(1, 1, 3, 4)
    averages = _average(maps, 3, 3)[0, 0]
    assert averages[1, 1] == maps[0, 0, :3, :3].mean()
    assert averages[0, 0] == maps[0, 0, :2, :2].mean()


def test_places_are_weighed_by_the_cube_of_their_amounts():
    uniform = torch.ones(1, 1, 8, 16)
    maps = _spread(uniform, torch.tensor([[[1.0, 2.0]]]), lambda row: row[:, :, None])[0, 0]
    torch.testing.assert_close(maps[:, -1] / maps[:, 0], torch.full((8,), 8.0))
    torch.testing.assert_close(maps.sum(), torch.tensor(3.0))


def test_pixels_are_weighed_by_the_square_of_how_much_they_stand_out():
    pixels = torch.ones(1, 1, 4, 4)
    pixels[0, 0, 1, 2] = 3.0
    pixels[0, 0, 0, 0] = -5.0  # what speaks against the word is not among what speaks for it
    one_neighbourhood = torch.tensor([[[2.0]]])
    maps = _spread(pixels, one_neighbourhood, lambda row: row[:, :, None])[0, 0]
    assert maps[0, 0] == 0
    torch.testing.assert_close(maps[1, 2] / maps[3, 3], torch.tensor(9.0))
