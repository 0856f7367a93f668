"""Batches of items in an order that depends on the seed and the epoch alone.

An epoch is planned as a list of global batches, the same on every process; each process takes its
share of every one of them. So a run with several processes sees the batches of a run with one, and
a run that stopped in the middle of an epoch goes on from the batch it had reached.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


class Batches:
    """Every item once per epoch, in batches that never mix two groups.

    With `lengths`, of every item, those of about one length come together. An item may come in
    several `versions`, of which an epoch takes one at random: version v of item i of n is i + v n.

    >>> batches = Batches([[0, 1, 2], [3]], batch_size=2, seed=1)
    >>> len(batches)
    3
    >>> sorted(int(i) for batch in batches.epoch(0) for i in batch)
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        *,
        batch_size: int,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        lengths: Sequence[int] | None = None,
        versions: int = 1,
    ) -> None:
        if batch_size < 1 or not 0 <= rank < world_size:
            raise ValueError(f"batch size {batch_size}, rank {rank} of {world_size}")
        self.groups = [np.asarray(group, dtype=np.int64) for group in groups if len(group)]
        self.lengths = None if lengths is None else np.asarray(lengths)
        self.versions = versions
        self.batch_size = batch_size
        self.seed = seed
        self.rank = rank
        self.world_size = world_size

    def __len__(self) -> int:
        """Batches in an epoch, the same in every epoch and on every process."""
        return sum(-(-len(group) // self.batch_size) for group in self.groups)

    def plan(self, epoch: int, lengths: Sequence[int] | None = None) -> list[Indices]:
        """The global batches of an epoch; `lengths` are those of this epoch, if they differ."""
        sizes = self.lengths if lengths is None else np.asarray(lengths)
        random = np.random.default_rng((self.seed, epoch))
        batches = []
        for group in self.groups:
            order = random.permutation(group)
            if sizes is not None:
                order = order[np.argsort(sizes[order], kind="stable")]
            batches += np.split(order, range(self.batch_size, len(order), self.batch_size))
        count = sum(map(len, self.groups))
        return [
            batches[i] + count * random.integers(self.versions, size=len(batches[i]))
            for i in random.permutation(len(batches))
        ]

    def epoch(
        self, epoch: int, start: int = 0, lengths: Sequence[int] | None = None
    ) -> Iterator[Indices]:
        """This process's part of each batch, from batch `start` on.

        The last batch of a group may be short, and then the part of a process may be empty: it has
        to take part in the step all the same, with weight zero.
        """
        for batch in self.plan(epoch, lengths)[start:]:
            yield batch[self.rank :: self.world_size]


def length_batches(
    lengths: Sequence[int],
    *,
    batch_size: int,
    seed: int,
    rank: int = 0,
    world_size: int = 1,
    versions: int = 1,
) -> Batches:
    """Batches of captions of one length each (paper 1, section 4.3): no step is spent on padding.

    Lengths come up in proportion to how many captions have them, because batches, not lengths, are
    shuffled. (The paper's original code visits the lengths in turn until each is used up, which
    leaves the end of every epoch to the commonest ones.)
    """
    of_length: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        of_length.setdefault(length, []).append(index)
    groups = [of_length[length] for length in sorted(of_length)]
    return Batches(
        groups,
        batch_size=batch_size,
        seed=seed,
        rank=rank,
        world_size=world_size,
        versions=versions,
    )


def image_batches(
    longest: Sequence[int],
    *,
    batch_size: int,
    seed: int,
    rank: int = 0,
    world_size: int = 1,
    versions: int = 1,
) -> Batches:
    """Batches of pictures, each to be taken with all its captions, which share its encoding.

    A batch is as slow as its longest caption, so pictures come together by the length of their
    `longest`: on Flickr8k a batch of 32 takes 16 steps instead of 21.
    """
    return Batches(
        [range(len(longest))],
        batch_size=batch_size,
        seed=seed,
        rank=rank,
        world_size=world_size,
        lengths=longest,
        versions=versions,
    )


def captions_in_turn(counts: Sequence[int], number: int, *, seed: int, epoch: int) -> list[Indices]:
    """Which `number` of its captions an epoch takes of each picture; all, if it has no more.

    They are taken in a random order, another one in every round, until all have had their turn.
    Which they are depends on the seed, the epoch and the picture alone.

    >>> first, second = (captions_in_turn([4], 2, seed=0, epoch=n)[0] for n in range(2))
    >>> sorted([*first.tolist(), *second.tolist()])
    [0, 1, 2, 3]
    """
    available = np.asarray(counts)[:, None]
    most = int(available.max())
    number = min(number, most)
    round_number, turn = divmod(epoch, -(-most // number))  # epochs that a round takes
    keys = np.random.default_rng((seed, round_number, number)).random((len(available), most))
    keys[np.arange(most) >= available] = np.inf
    places = (turn * number + np.arange(number)) % available
    chosen = np.take_along_axis(keys.argsort(1), places, 1)
    return [row[:count] for row, count in zip(chosen, counts, strict=True)]
