"""Pictures on their way through an encoder: opened, prepared, encoded once."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image, Resampling
from PIL.Image import fromarray as image_of
from PIL.Image import new as new_image

from sightline.encoded_picture import EncodedPicture
from sightline.encoders.encoder import Encoder
from sightline.encoders.precomputed import collate
from sightline.encoders.precomputed_encoder import PrecomputedEncoder
from sightline.pictures import Picture, open_picture
from sightline.regions import Regions
from sightline.report.heatmaps import fit
from sightline.report.report import REPORT_SIDE

AnyPicture = Picture | EncodedPicture
Prepared = tuple[NDArray[np.uint8], tuple[float, float, float, float]]  # pixels and their window
ONE = (Path, str, bytes, Image, np.ndarray, EncodedPicture)  # what is a picture, and not several

_AT_ONCE = 16  # pictures of 384 x 384 pixels or less that are encoded together
_BLANK = (224, 224)  # a picture of which only the features are there


def open_for(encoder: Encoder, picture: Picture) -> Image:
    """A picture upright, decoded no larger than the encoder needs."""
    return open_picture(picture, reduced_to=2 * encoder.preprocessing.size)


def encode_pictures(
    encoder: Encoder, pictures: Sequence[AnyPicture], device: torch.device
) -> list[EncodedPicture]:
    """Each picture, encoded; those that already are come back unchanged."""
    encoded = {n: p for n, p in enumerate(pictures) if isinstance(p, EncodedPicture)}
    if isinstance(encoder, PrecomputedEncoder):
        return [
            encoded[n] if n in encoded else _look_up(encoder, p, device)  # type: ignore[arg-type]
            for n, p in enumerate(pictures)
        ]
    unseen = [n for n in range(len(pictures)) if n not in encoded]
    at_once = max(1, min(_AT_ONCE, _AT_ONCE * 384**2 // encoder.preprocessing.size**2))
    for start in range(0, len(unseen), at_once):
        numbers = unseen[start : start + at_once]
        images = [open_for(encoder, pictures[n]) for n in numbers]  # type: ignore[arg-type]
        prepared = [encoder.preprocessing.prepare(image) for image in images]
        encoded |= zip(numbers, encode_prepared(encoder, prepared, images, device), strict=True)
    return [encoded[n] for n in range(len(pictures))]


def encode_prepared(
    encoder: Encoder,
    prepared: Sequence[Prepared],
    images: Sequence[Image] | None,
    device: torch.device,
) -> list[EncodedPicture]:
    """Encode what `encoder.preprocessing` made; without `images`, pictures are as it made them."""
    images = images or [image_of(pixels) for pixels, _ in prepared]
    pixels = torch.from_numpy(np.stack([pixels for pixels, _ in prepared])).to(device)
    windows = torch.tensor([window for _, window in prepared], device=device)
    with torch.inference_mode():
        regions = encoder(pixels, windows)
    # Half precision, as in the cache that training reads: the same numbers in, the same out.
    vectors = regions.vectors.half().float() if encoder.cached else regions.vectors.clone()
    regions = Regions(vectors, regions.mask.clone(), regions.boxes.clone())
    return [
        EncodedPicture(image, pixels[n : n + 1], windows[n : n + 1], regions[[n]])
        for n, image in enumerate(images)
    ]


def _look_up(encoder: PrecomputedEncoder, picture: Picture, device: torch.device) -> EncodedPicture:
    """A picture whose regions are known by its name; it is blank if only they are there."""
    regions = collate([encoder.look_up(picture)])
    regions = Regions(regions.vectors.half().float(), regions.mask, regions.boxes)
    exists = Path(picture).exists()  # type: ignore[arg-type]
    image = open_for(encoder, picture) if exists else new_image("RGB", _BLANK, "white")
    whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]], device=device)
    no_pixels = torch.empty(1, 0, 0, 3, dtype=torch.uint8, device=device)
    return EncodedPicture(image, no_pixels, whole, regions.to(device))


def as_shown(picture: AnyPicture, encoded: EncodedPicture) -> EncodedPicture:
    """The same pixels and regions, of an image as fine as a reader's screen.

    A file is decoded once more for it: larger than captioners need, smaller than cameras take.
    """
    image = encoded.image
    if isinstance(picture, bytes) or (isinstance(picture, Path | str) and Path(picture).exists()):
        image = open_picture(picture, reduced_to=REPORT_SIDE)
    size = fit(image.width, image.height, REPORT_SIDE)
    if size != image.size:
        image = image.resize(size, Resampling.LANCZOS)
    return dataclasses.replace(encoded, image=image)
