"""From an item of a list to what the encoder takes: read, hashed, decoded, resized."""

import hashlib
import os
from dataclasses import dataclass, replace

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


def open_item(
    item: Item, preprocessing: Preprocessing, keep_content: bool = False
) -> Opened | Failure:
    """Read, hash and prepare a picture; or say what is wrong with it.

    Bytes that came with the item are let go, unless they are to be kept.
    """
    try:
        content = item.read()
    except PictureError as error:
        kind = "unreadable" if item.path is None or os.path.exists(item.path) else "missing"
        return Failure(item.name, kind, str(error))
    try:
        image = open_picture(content, reduced_to=2 * preprocessing.size)
    except PictureError as error:
        kind = "damaged" if isinstance(error, DamagedPictureError) else "format"
        return Failure(item.name, kind, str(error).replace("the picture", item.name, 1))
    item = item if keep_content else replace(item, content=None)
    return Opened(item, hashlib.sha256(content).hexdigest(), preprocessing.prepare(image))
