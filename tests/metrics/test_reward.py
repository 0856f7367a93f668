import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocoevalcap.cider.cider import Cider as ReferenceCiderD

from sightline.errors import DataError
from sightline.metrics import CiderReward

REFERENCES = [
    [[5, 6, 7, 8], [5, 6, 9]],
    [[1, 2, 3, 4, 2, 3], [1, 2], [7]],
    [[3, 3, 3, 5, 6]],
]


def spelled(ids):
    return " ".join(f"w{number}" for number in ids)


def reference_scores(reference_value, captions):
    references = [[spelled(caption) for caption in image] for image in REFERENCES]
    return reference_value(ReferenceCiderD(), list(map(spelled, captions)), references)[1]


def test_equals_the_reference_without_counting_ends(reference_value):
    expected = reference_scores(reference_value, [[5, 6, 7], [1, 2, 3, 99], [3]])
    reward = CiderReward(REFERENCES, end=0, count_end=False)
    rows = [[5, 6, 7, 0, 4, 4], [1, 2, 3, 99, 0, 0], [3, 0, 0, 0, 0, 0]]
    np.testing.assert_allclose(reward.score_ids(rows, [0, 1, 2]), expected, rtol=0, atol=1e-9)


def test_an_end_counts_as_a_word(reference_value):
    # As if every reference, and every candidate that ended, had one word more.
    references = [[spelled([*caption, 0]) for caption in image] for image in REFERENCES]
    candidates = [[5, 6, 7, 0], [1, 2, 3, 99, 1], [0]]  # the second never ended
    expected = reference_value(ReferenceCiderD(), list(map(spelled, candidates)), references)[1]
    reward = CiderReward(REFERENCES, end=0)
    rows = [[5, 6, 7, 0, 0], [1, 2, 3, 99, 1], [0, 0, 0, 0, 0]]
    np.testing.assert_allclose(reward.score_ids(rows, [0, 1, 2]), expected, rtol=0, atol=1e-9)


def test_ending_pays():
    reward = CiderReward(REFERENCES, end=0)
    ended, not_ended = reward.score_ids([[5, 6, 9, 0], [5, 6, 9, 9]], [0, 0])
    assert ended > not_ended


def test_references_may_carry_their_end():
    rows = [[5, 6, 7, 0, 0], [1, 2, 3, 99, 1]]
    with_ends = [[[*caption, 0, 0] for caption in image] for image in REFERENCES]
    expected = CiderReward(REFERENCES, end=0).score_ids(rows, [0, 1])
    assert CiderReward(with_ends, end=0).score_ids(rows, [0, 1]).tolist() == expected.tolist()


rows_of_ids = st.lists(
    st.lists(st.integers(0, 9) | st.sampled_from([1000, 2**31 - 1]), min_size=6, max_size=6),
    min_size=1,
    max_size=8,
)


@settings(max_examples=40)
@given(rows_of_ids, st.data())
def test_a_batch_equals_its_rows_and_unknown_ids_are_harmless(rows, data):
    image = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    reward = CiderReward(REFERENCES, end=0)
    together = reward.score_ids(rows, image)
    alone = [reward.score_ids([row], [i])[0] for row, i in zip(rows, image, strict=True)]
    assert np.isfinite(together).all()
    assert together == pytest.approx(alone, abs=1e-12)
    # Which unknown word it is does not matter, as long as equal ones stay equal.
    renamed = [[{1000: 77, 2**31 - 1: 78}.get(word, word) for word in row] for row in rows]
    assert reward.score_ids(renamed, image) == pytest.approx(together, abs=1e-12)


def test_without_an_end_id_rows_are_whole_captions():
    reward = CiderReward([[[5, 6, 7, 8]], [[1, 2]]])
    assert reward.score_ids([[5, 6, 7, 8]], [0])[0] == pytest.approx(10)


@pytest.mark.parametrize(
    ("rows", "image", "message"),
    [
        ([[1, 2]], [3], r"outside 0\.\.2"),
        ([[1, 2]], [-1], r"outside 0\.\.2"),
        ([1, 2], [0], r"shape \(2,\)"),
        ([[1, 2]], [0, 1], r"pictures of shape \(2,\)"),
        ([[1, -2]], [0], "word ids must be from 0"),
    ],
)
def test_wrong_ids_are_refused(rows, image, message):
    with pytest.raises(DataError, match=message):
        CiderReward(REFERENCES, end=0).score_ids(rows, image)


@pytest.mark.parametrize("references", [[], [[[1]], []]])
def test_missing_references_are_refused(references):
    with pytest.raises(DataError, match="a reference for each"):
        CiderReward(references)
