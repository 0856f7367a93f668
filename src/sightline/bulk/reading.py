"""From an item of a list to what the encoder takes: read, hashed, decoded, resized."""

import hashlib
from dataclasses import dataclass

from sightline.bulk.items import Item
from sightline.bulk.records import Failure
from sightline.captioner import Prepared
from sightline.encoded_picture import EncodedPicture
from sightline.encoders.preprocessing import Preprocessing
from sightline.errors import DamagedPictureError, PictureError
from sightline.pictures import open_picture


@dataclass(frozen=True, slots=True)
class Opened:
    """A picture that was read and prepared for the encoder."""

    item: Item
    sha256: str
    prepared: Prepared | EncodedPicture


def open_item(item: Item, preprocessing: Preprocessing) -> Opened | Failure:
    """Read, hash and prepare a picture; or say what is wrong with it."""
    try:
        content = item.read()
    except PictureError as error:
        kind = "unreadable" if item.path is None or item.path.exists() else "missing"
        return Failure(item.name, kind, str(error))
    try:
        image = open_picture(content, reduced_to=2 * preprocessing.size)
    except PictureError as error:
        kind = "damaged" if isinstance(error, DamagedPictureError) else "format"
        return Failure(item.name, kind, str(error).replace("the picture", item.name, 1))
    return Opened(item, hashlib.sha256(content).hexdigest(), preprocessing.prepare(image))
