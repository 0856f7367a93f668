import pickle

import numpy as np
import pytest

from sightline.errors import DataError
from sightline.metrics import DocumentFrequencies, cider_d, document_frequencies

CORPUS = [["a dog runs", "the dog"], ["a cat sits on the café", "a dog runs"], ["two men"]]


def counts_of(frequencies, words):
    """Document frequency of an n-gram given as words."""
    ids = [list(frequencies.words).index(word) for word in words]
    number = ids[0]
    for order, word in enumerate(ids[1:], 2):
        number = frequencies.numbering.packed(order).tolist().index(number << 31 | word)
    return frequencies.counts[len(words) - 1][number]


def test_counts_pictures_not_captions():
    frequencies = document_frequencies(CORPUS)
    assert frequencies.images == 3
    assert counts_of(frequencies, ["a"]) == 2
    assert counts_of(frequencies, ["dog"]) == 2
    assert counts_of(frequencies, ["a", "dog", "runs"]) == 2
    assert counts_of(frequencies, ["sits", "on", "the", "café"]) == 1


def test_saving_and_loading_changes_nothing(tmp_path):
    frequencies = document_frequencies(CORPUS)
    path = tmp_path / "corpus.npz"
    frequencies.save(path)
    loaded = DocumentFrequencies.load(path)
    assert loaded.images == frequencies.images
    assert list(loaded.words) == list(frequencies.words)
    candidates, references = ["a dog sits", "two cats"], [["a dog runs"], ["two men on a café"]]
    before = cider_d(candidates, references, frequencies)
    assert cider_d(candidates, references, loaded).per_image.tolist() == before.per_image.tolist()


def test_a_file_that_is_none_is_refused(tmp_path):
    path = tmp_path / "corpus.npz"
    with pytest.raises(DataError, match="no such file"):
        DocumentFrequencies.load(path)
    path.write_text("hello")
    with pytest.raises(DataError, match="not a file of document frequencies"):
        DocumentFrequencies.load(path)
    np.savez(path, images=np.array(3))
    with pytest.raises(DataError, match="words"):
        DocumentFrequencies.load(path)


def test_a_pickle_is_never_opened(tmp_path):
    path = tmp_path / "corpus.npz"
    path.write_bytes(pickle.dumps({"images": 3}))
    with pytest.raises(DataError, match="not a file of document frequencies"):
        DocumentFrequencies.load(path)


def test_parts_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "corpus.npz"
    frequencies = document_frequencies(CORPUS)
    short = [frequencies.counts[0][:-1], *frequencies.counts[1:]]
    DocumentFrequencies(3, frequencies.words, frequencies.numbering, short).save(path)
    with pytest.raises(DataError, match="have different lengths"):
        DocumentFrequencies.load(path)


def test_no_captions_are_refused():
    with pytest.raises(DataError, match="no captions"):
        document_frequencies([])
