"""Where captions go."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sightline.bulk.items import Item
from sightline.bulk.records import Failure, Record
from sightline.errors import PictureError


class Sink:
    """What a job hands its captions to. This one only says what a sink can do.

    >>> class Lengths(Sink):
    ...     def write(self, records, failures):
    ...         print([len(record.caption.words) for record in records])
    """

    keeps_content = False  # whether `Record.item.read` is called where bytes came with the item

    def begin(self, job: dict[str, Any]) -> int:
        """Called once, with what the captions depend on; the number of pictures that are done."""
        return 0

    def has(self, item: Item) -> bool:
        """Whether nothing is to be done for a picture, as far as its name tells."""
        return False

    def has_failed(self, failure: Failure) -> bool:
        """Whether a failure of the list itself is known already."""
        return False

    def has_unchanged(self, item: Item, sha256: str) -> bool:
        """Whether a picture with this content is done."""
        return False

    def write(self, records: Sequence[Record], failures: Sequence[Failure]) -> None:
        """Take a batch, and the pictures on the way to it that could not be captioned."""
        raise NotImplementedError

    def finish(self) -> None:
        """Called once, after the last batch."""


def pending(
    source: Iterable[Item | Failure], sink: Sink, skip: Callable[[], None]
) -> Iterator[Item | Failure]:
    """What of a list a sink does not have, each name once; `skip` is called for the others."""
    seen: set[int] = set()
    for item in source:
        known = item.key in seen
        seen.add(item.key)
        try:
            if known or (sink.has_failed(item) if isinstance(item, Failure) else sink.has(item)):
                skip()
                continue
        except PictureError as error:  # what is there for it cannot be read
            item = Failure(item.name, "output", str(error))
        yield item
