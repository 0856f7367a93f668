import pytest
import torch

from sightline.decoding.constraints import Constraints, constrain_
from sightline.errors import ConfigError
from sightline.text.vocabulary import END, PAD, START, UNKNOWN

VOCABULARY = 8


def possible(words, limits):
    """The words that may follow, of rows of equal length."""
    prefix = torch.tensor([[[START, *row] for row in words]])
    log_probs = torch.randn(1, len(words), VOCABULARY).log_softmax(-1)
    constrained = log_probs.clone()
    constrain_(constrained, prefix, limits)
    open_ = constrained > float("-inf")
    assert torch.equal(constrained[open_], log_probs[open_])  # what may be said costs what it did
    return [row.nonzero().flatten().tolist() for row in open_[0]]


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("length", range(8))
def test_what_may_follow_equals_a_plain_rereading_row_by_row(allowed, n, length):
    torch.manual_seed(10 * n + length)
    words = torch.randint(4, 7, (40, length)).tolist()
    limits = Constraints(7, 3, n, avoid=(5,))
    expected = [sorted(allowed(tuple(row), limits)) for row in words]
    assert possible(words, limits) == expected


def test_no_word_is_never_an_answer():
    for length in range(4):
        (words,) = possible([[4] * length], Constraints())
        assert not {PAD, START, UNKNOWN} & set(words)
        assert (END in words) == (length >= 1)


def test_the_longest_caption_is_ended():
    assert possible([[4, 5, 6]], Constraints(max_length=3)) == [[END]]


def test_an_ended_caption_goes_on_with_padding_at_no_cost():
    prefix = torch.tensor([[[START, 4, END, PAD], [START, 4, 5, END], [START, 4, 5, 6]]])
    for limits in (Constraints(), Constraints(3, no_repeat_ngram=1), Constraints(9, 9)):
        constrained = torch.randn(1, 3, VOCABULARY)
        constrain_(constrained, prefix, limits)
        assert (constrained[0, :2, PAD] == 0).all()
        assert (constrained[0, :2, 1:] == float("-inf")).all()
        assert constrained[0, 2, PAD] == float("-inf")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_length": 0}, "a caption of at least 0 and at most 20 words is impossible"),
        ({"max_length": 2, "min_length": 3}, "a caption of at least 3 and at most 2 words"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram must be a number of words, or 0 for no limit"),
        ({"avoid": (5, 6), "require": (6,)}, "a word is both required and to be avoided"),
        ({"max_length": 1, "require": (5, 6)}, "2 required words do not fit into 1"),
        ({"require": (5, 5)}, "a word is required twice"),
        ({"require": (UNKNOWN,)}, "only words can be required"),
        ({"avoid": (END,)}, "only words can be required; the end cannot be avoided"),
    ],
)
def test_limits_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError) as error:
        Constraints(**options)
    assert str(error.value).startswith(f"decoding: {message}")
    assert "\n" not in str(error.value)
