"""The laws of the sampler."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.data.batches import Batches, captions_in_turn, image_batches, length_batches

lengths = st.lists(st.integers(1, 6), min_size=1, max_size=60)
sizes = st.integers(1, 9)
seeds = st.integers(0, 2**32)
epochs = st.integers(0, 1000)
worlds = st.integers(1, 4)


def listed(batches):
    return [batch.tolist() for batch in batches]


@given(lengths, sizes, seeds, epochs, worlds)
def test_every_caption_once_per_epoch_over_all_processes(lengths, size, seed, epoch, world):
    seen = [
        index
        for rank in range(world)
        for batch in length_batches(
            lengths, batch_size=size, seed=seed, rank=rank, world_size=world
        ).epoch(epoch)
        for index in batch.tolist()
    ]
    assert sorted(seen) == list(range(len(lengths)))


@given(lengths, sizes, seeds, epochs)
def test_no_batch_mixes_lengths_or_is_too_large_or_empty(lengths, size, seed, epoch):
    batches = length_batches(lengths, batch_size=size, seed=seed)
    listing = listed(batches.epoch(epoch))
    assert all(len({lengths[i] for i in batch}) == 1 for batch in listing)
    assert all(1 <= len(batch) <= size for batch in listing)
    # As few batches as there can be, so as many as the length says.
    assert len(listing) == len(batches)
    assert len(batches) == sum(-(-lengths.count(n) // size) for n in set(lengths))


@given(lengths, sizes, seeds, epochs, worlds, st.data())
def test_depends_on_seed_epoch_and_rank_only(lengths, size, seed, epoch, world, data):
    rank = data.draw(st.integers(0, world - 1))

    def make():
        return length_batches(lengths, batch_size=size, seed=seed, rank=rank, world_size=world)

    used = make()
    list(used.epoch(epoch + 1))  # what was drawn before does not matter
    assert listed(used.epoch(epoch)) == listed(make().epoch(epoch))


@given(lengths, sizes, seeds, epochs, worlds, st.data())
def test_going_on_from_the_middle_gives_the_rest(lengths, size, seed, epoch, world, data):
    rank = data.draw(st.integers(0, world - 1))
    batches = length_batches(lengths, batch_size=size, seed=seed, rank=rank, world_size=world)
    start = data.draw(st.integers(0, len(batches)))
    assert listed(batches.epoch(epoch, start)) == listed(batches.epoch(epoch))[start:]


@given(lengths, sizes, seeds, epochs, worlds)
def test_the_parts_of_all_processes_are_the_batch_of_one(lengths, size, seed, epoch, world):
    alone = listed(length_batches(lengths, batch_size=size, seed=seed).epoch(epoch))
    parts = [
        listed(
            length_batches(lengths, batch_size=size, seed=seed, rank=rank, world_size=world).epoch(
                epoch
            )
        )
        for rank in range(world)
    ]
    assert all(len(part) == len(alone) for part in parts)
    for whole, *shares in zip(alone, *parts, strict=True):
        assert sorted(whole) == sorted(index for share in shares for index in share)
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_epochs_and_seeds_differ():
    plans = [
        listed(length_batches([1, 2] * 50, batch_size=4, seed=seed).epoch(epoch))
        for seed in (0, 1)
        for epoch in (0, 1, 2)
    ]
    assert all(a != b for a in plans for b in plans if a is not b)


def test_batches_and_not_lengths_are_shuffled():
    """Lengths in turn would put the rare one among the first two of every epoch."""
    batches = length_batches([3] + [5] * 99, batch_size=1, seed=0)
    places = [listed(batches.epoch(epoch)).index([0]) for epoch in range(200)]
    assert 35 < np.mean(places) < 65
    assert max(places) > 90


def test_within_a_length_the_company_changes():
    batches = length_batches([4] * 40, batch_size=2, seed=0)
    partners = [
        next(b for b in map(set, listed(batches.epoch(epoch))) if 0 in b) for epoch in range(5)
    ]
    assert any(a != b for a, b in pairwise(partners))


@given(lengths, sizes, seeds, epochs)
def test_image_batches(longest, size, seed, epoch):
    batches = image_batches(longest, batch_size=size, seed=seed)
    listing = listed(batches.epoch(epoch))
    assert sorted(index for batch in listing for index in batch) == list(range(len(longest)))
    assert sorted(map(len, listing), reverse=True)[:-1] == [size] * (len(listing) - 1)
    # Laid end to end, the shortest first, no batch reaches into the lengths of another.
    ranges = sorted(
        (min(sizes), max(sizes)) for sizes in ([longest[i] for i in b] for b in listing)
    )
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))


def test_pictures_of_one_length_change_company_and_lengths_come_in_any_order():
    batches = image_batches([3, 5] * 20, batch_size=2, seed=0)
    partners = [
        next(b for b in map(set, listed(batches.epoch(epoch))) if 0 in b) for epoch in range(5)
    ]
    assert any(a != b for a, b in pairwise(partners))
    order = [batch[0] % 2 for batch in listed(batches.epoch(0))]
    assert order not in (sorted(order), sorted(order, reverse=True))


def test_each_epoch_takes_a_version_of_every_item_by_chance():
    batches = length_batches([4, 5] * 20, batch_size=3, seed=0, versions=2)
    epochs = [[i for batch in listed(batches.epoch(e)) for i in batch] for e in range(4)]
    for epoch in epochs:
        assert sorted(i % 40 for i in epoch) == list(range(40))
        assert 10 < sum(i >= 40 for i in epoch) < 30
    assert len({tuple(sorted(epoch)) for epoch in epochs}) == 4
    # Whatever the version, the order is that of the items alone.
    plain = length_batches([4, 5] * 20, batch_size=3, seed=0)
    assert [i % 40 for i in epochs[0]] == [i for b in listed(plain.epoch(0)) for i in b]


def test_lengths_of_an_epoch_take_the_place_of_those_of_all():
    batches = image_batches([1, 2] * 10, batch_size=5, seed=0)
    for batch in listed(batches.epoch(0, lengths=[1] * 10 + [2] * 10)):
        assert len({i < 10 for i in batch}) == 1


@given(st.lists(st.integers(1, 7), min_size=1, max_size=20), st.integers(1, 8), seeds, epochs)
def test_captions_have_their_turn(counts, number, seed, epoch):
    rounds = -(-max(counts) // min(number, max(counts)))
    first = epoch - epoch % rounds
    turns = [captions_in_turn(counts, number, seed=seed, epoch=first + n) for n in range(rounds)]
    for picture, count in enumerate(counts):
        taken = [turn[picture].tolist() for turn in turns]
        for captions in taken:
            assert len(captions) == len(set(captions)) == min(count, number)
        assert {caption for captions in taken for caption in captions} == set(range(count))


def test_captions_are_chosen_by_seed_epoch_and_picture_alone():
    def chosen(epoch, seed=0, pictures=200):
        return [
            tuple(sorted(turn.tolist()))
            for turn in captions_in_turn([5] * pictures, 2, seed=seed, epoch=epoch)
        ]

    assert chosen(4) == chosen(4)
    assert chosen(4, pictures=7) == chosen(4)[:7]
    assert chosen(4) != chosen(4, seed=1)
    assert chosen(0) != chosen(3)  # another round, another order
    for epoch in range(6):  # each of the ten pairs for a tenth of the pictures
        assert set(Counter(chosen(epoch)).values()) <= set(range(5, 40))
        assert len(set(chosen(epoch))) == 10
    assert chosen(1, seed=7, pictures=3) == [(1, 4), (3, 4), (1, 2)]  # on every machine


def test_the_order_is_the_same_on_every_machine():
    """A run resumed elsewhere, or years later, must go on in the same order."""
    batches = length_batches([2, 3, 2, 3, 2], batch_size=2, seed=7)
    assert listed(batches.epoch(1)) == [[3, 1], [0, 4], [2]]


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"rank": 1}, {"rank": -1}])
def test_impossible_settings(wrong):
    with pytest.raises(ValueError, match="batch size"):
        Batches([[0]], **{"batch_size": 1, "seed": 0, **wrong})
