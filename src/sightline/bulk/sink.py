"""Where captions go."""

from collections.abc import Sequence
from typing import Any

from sightline.bulk.items import Item
from sightline.bulk.records import Failure, Record


class Sink:
    """What a job hands its captions to. This one only says what a sink can do.

    >>> class Lengths(Sink):
    ...     def write(self, records, failures):
    ...         print([len(record.caption.words) for record in records])
    """

    def begin(self, job: dict[str, Any]) -> int:
        """Called once, with what the captions depend on; the number of pictures that are done."""
        return 0

    def has(self, item: Item) -> bool:
        """Whether nothing is to be done for a picture, as far as its name tells."""
        return False

    def has_unchanged(self, item: Item, sha256: str) -> bool:
        """Whether a picture with this content is done."""
        return False

    def write(self, records: Sequence[Record], failures: Sequence[Failure]) -> None:
        """Take a batch, and the pictures on the way to it that could not be captioned."""
        raise NotImplementedError

    def finish(self) -> None:
        """Called once, after the last batch."""
