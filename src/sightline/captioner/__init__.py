"""Captioners: a picture in; captions, their support and their explanations out."""

from sightline.captioner.captioner import Captioner, wrap
from sightline.captioner.encoding import AnyPicture, Prepared
from sightline.captioner.remote import RemoteCaptioner

__all__ = ["AnyPicture", "Captioner", "Prepared", "RemoteCaptioner", "wrap"]
