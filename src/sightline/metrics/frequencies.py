"""Document frequencies of n-grams: what CIDEr weighs agreement by, and a file to keep them in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sightline.errors import DataError
from sightline.files import DATA_BYTES, atomic_write, open_regular
from sightline.metrics.ngrams import ORDERS, Ints, Numbering


@dataclass(frozen=True, eq=False)
class DocumentFrequencies:
    """In the references of how many of `images` pictures each n-gram occurs.

    `counts[n - 1][g]` belongs to n-gram g of order n in `numbering`; word w is `words[w]`.

    >>> from sightline.metrics import document_frequencies
    >>> frequencies = document_frequencies([["a dog", "the dog"], ["a cat"]])
    >>> frequencies.images, frequencies.words[1], int(frequencies.counts[0][1])
    (2, 'dog', 1)
    """

    images: int
    words: Sequence[str]
    numbering: Numbering
    counts: Sequence[Ints]

    def save(self, path: Path) -> None:
        """Write a `.npz` file: numbers and words only, readable by any NumPy."""
        arrays: dict[str, Any] = {"images": np.array(self.images)}
        arrays["words"] = np.frombuffer("\n".join(self.words).encode(), np.uint8)
        arrays |= {f"packed{order}": self.numbering.packed(order) for order in ORDERS[1:]}
        arrays |= {f"count{order}": self.counts[order - 1] for order in ORDERS}
        with atomic_write(path, "wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: Path) -> "DocumentFrequencies":
        """Read what `save` wrote."""
        try:
            open_regular(path, DATA_BYTES).close()
            with np.load(path, allow_pickle=False) as file:
                words = file["words"].tobytes().decode().split("\n")
                packed = [file[f"packed{order}"] for order in ORDERS[1:]]
                counts = [file[f"count{order}"] for order in ORDERS]
                images = int(file["images"])
        except FileNotFoundError:
            raise DataError(f"{path}: no such file of document frequencies") from None
        # numpy and zipfile raise many things on damaged files; the file is the cause.
        except Exception as error:
            reason = (str(error) or type(error).__name__).split("\n")[0][:200]
            raise DataError(
                f"{path}: not a file of document frequencies ({reason}); "
                "write one with sightline score --save-frequencies"
            ) from None
        if [len(words), *map(len, packed)] != [*map(len, counts)]:
            raise DataError(f"{path}: its words, n-grams and counts have different lengths")
        return cls(images, words, Numbering.of_packed(len(words), packed), counts)
