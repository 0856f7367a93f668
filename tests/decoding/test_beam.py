import pytest
import torch

from sightline.decoding.beam import BeamOptions, _likeliest, beam_search
from sightline.decoding.constraints import Constraints
from sightline.decoding.stepwise import greedy
from sightline.decoding.words import describe_words
from sightline.errors import ConfigError
from sightline.text.vocabulary import END, PAD

SEEDS = range(4)
SHORT = Constraints(max_length=3)
EXHAUSTIVE = 84  # 4 + 16 + 64 captions of up to three of four words


def ranked(tiny, captions, power):
    """Captions of the one picture, best first, with their scores."""
    log_probs = tiny.log_probs(tiny.memory, captions).tolist()
    scores = [log_prob / len(c) ** power for c, log_prob in zip(captions, log_probs, strict=True)]
    return sorted(zip(captions, scores, strict=True), key=lambda pair: -pair[1])


def assert_finds(hypotheses, expected, texts):
    """One picture's captions are the expected ones, in order, with the expected scores."""
    assert texts(hypotheses.tokens[0]) == [caption for caption, _ in expected]
    assert hypotheses.scores[0].tolist() == pytest.approx(
        [score for _, score in expected], abs=1e-4
    )


def plain_search(tiny, memory, options, allowed):
    """The textbook search of one picture: a list of captions, extended word by word."""

    def score(candidate):
        return candidate[1] / max(len(candidate[0]), 1) ** options.length_power

    rows = [((), 0.0)]
    for _ in range(options.constraints.max_length + 1):
        candidates = []
        for words, log_prob in rows:
            if words and words[-1] == END:
                candidates.append((words, log_prob))
                continue
            next_word = tiny.next_word(memory, words).tolist()
            for word in allowed(words, options.constraints):
                candidates.append(((*words, word), log_prob + next_word[word]))
        rows = sorted(candidates, key=score, reverse=True)[: options.beam]
    return [(words, score((words, log_prob))) for words, log_prob in rows]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("limits", [Constraints(max_length=6), Constraints(6, 4, 2, avoid=(5,))])
def test_a_beam_of_one_is_greedy(tiny, seed, limits):
    tiny = tiny(seed, pictures=5)
    beam = beam_search(tiny.model, tiny.memory, BeamOptions(beam=1, constraints=limits))
    plain = greedy(tiny.model, tiny.memory, limits)
    assert torch.equal(beam.tokens, plain.tokens)
    torch.testing.assert_close(beam.log_probs, plain.log_probs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("power", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("limits", [SHORT, Constraints(3, 2, no_repeat_ngram=1)])
def test_an_exhaustive_beam_finds_the_best_of_all_captions(
    tiny, captions_of, texts, seed, power, limits
):
    tiny = tiny(seed)
    options = BeamOptions(EXHAUSTIVE, n_best=10, length_power=power, constraints=limits)
    hypotheses = beam_search(tiny.model, tiny.memory, options)
    assert_finds(hypotheses, ranked(tiny, captions_of(limits), power)[:10], texts)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_beam_of_the_vocabularys_size_is_exact_for_one_word(tiny, captions_of, texts, seed):
    tiny = tiny(seed)
    limits = Constraints(max_length=1)
    options = BeamOptions(beam=4, n_best=4, constraints=limits)
    hypotheses = beam_search(tiny.model, tiny.memory, options)
    assert_finds(hypotheses, ranked(tiny, captions_of(limits), 0.7), texts)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("power", [0.0, 0.7])
@pytest.mark.parametrize(
    "limits", [Constraints(max_length=6), Constraints(6, 3, no_repeat_ngram=2, avoid=(6,))]
)
def test_a_narrow_beam_is_the_textbook_search(tiny, allowed, texts, seed, power, limits):
    tiny = tiny(seed, pictures=2, end_bias=1.0)
    options = BeamOptions(beam=3, n_best=3, length_power=power, constraints=limits)
    hypotheses = beam_search(tiny.model, tiny.memory, options)
    for i in range(2):
        one = type(hypotheses)(*(tensor[i : i + 1] for tensor in hypotheses))
        assert_finds(one, plain_search(tiny, tiny.picture(i), options, allowed), texts)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "options",
    [
        BeamOptions(beam=3, n_best=3),
        BeamOptions(beam=2, n_best=4, groups=2),
        BeamOptions(beam=2, n_best=2, constraints=Constraints(max_length=6, require=(6, 4))),
    ],
)
def test_a_batch_equals_its_pictures_one_by_one(tiny, texts, seed, options):
    tiny = tiny(seed, pictures=8, end_bias=1.5)
    together = beam_search(tiny.model, tiny.memory, options)
    for i in range(8):
        alone = beam_search(tiny.model, tiny.picture(i), options)
        assert texts(together.tokens[i]) == texts(alone.tokens[0])
        torch.testing.assert_close(together.log_probs[i], alone.log_probs[0])
        torch.testing.assert_close(together.scores[i], alone.scores[0])


def test_pictures_of_the_batch_above_end_at_different_times(tiny):
    tiny = tiny(0, pictures=8, end_bias=1.5)
    tokens = beam_search(tiny.model, tiny.memory, BeamOptions(beam=3, n_best=3)).tokens
    assert len(set((tokens != PAD).sum(-1).amax(1).tolist())) > 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("groups", [1, 3])
def test_scores_are_those_of_forced_decoding(tiny, seed, groups):
    tiny = tiny(seed, pictures=6, end_bias=1.0)
    hypotheses = beam_search(tiny.model, tiny.memory, BeamOptions(4, 4, groups=groups))
    words = describe_words(tiny.model, tiny.memory, hypotheses.tokens).log_probs
    torch.testing.assert_close(hypotheses.word_log_probs, words, rtol=0, atol=1e-4)
    forced = words.sum(-1)
    torch.testing.assert_close(hypotheses.log_probs, forced, rtol=0, atol=1e-4)
    length = (hypotheses.tokens != PAD).sum(-1)
    torch.testing.assert_close(hypotheses.scores, forced / length**0.7, rtol=0, atol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_captions_are_distinct_sorted_and_end_once(tiny, texts, seed):
    tiny = tiny(seed, pictures=6, end_bias=1.0)
    hypotheses = beam_search(tiny.model, tiny.memory, BeamOptions(beam=5, n_best=5))
    assert (hypotheses.scores.diff(dim=1) <= 0).all()
    for tokens in hypotheses.tokens:
        captions = texts(tokens)
        assert len(set(captions)) == 5
        for caption, row in zip(captions, tokens.tolist(), strict=True):
            assert caption.index(END) == len(caption) - 1
            assert min(caption) >= END
            assert row == [*caption, *[PAD] * (len(row) - len(caption))]


def test_lengths_keep_to_their_limits(tiny):
    tiny = tiny(0, pictures=6)
    for low, high in ((1, 1), (3, 5), (7, 7)):
        options = BeamOptions(beam=4, n_best=4, constraints=Constraints(high, low))
        words = (beam_search(tiny.model, tiny.memory, options).tokens > END).sum(-1)
        assert low <= words.min()
        assert words.max() <= high


def test_captions_that_cannot_be_are_left_empty(tiny, texts):
    tiny = tiny(0)
    options = BeamOptions(9, 9, constraints=Constraints(2, no_repeat_ngram=1, avoid=(4, 5)))
    hypotheses = beam_search(tiny.model, tiny.memory, options)
    assert set(texts(hypotheses.tokens[0])[:4]) == {(6, 2), (7, 2), (6, 7, 2), (7, 6, 2)}
    assert texts(hypotheses.tokens[0])[4:] == [()] * 5
    assert (hypotheses.log_probs[0, 4:] == float("-inf")).all()
    assert (hypotheses.scores[0, 4:] == float("-inf")).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("require", [(4,), (6, 5), (7, 4, 5)])
def test_required_words_appear_in_the_best_caption_that_has_them(
    tiny, captions_of, texts, seed, require
):
    tiny = tiny(seed)
    limits = Constraints(max_length=3, require=require)
    expected = ranked(tiny, captions_of(limits), 0.7)[:6]
    options = BeamOptions(EXHAUSTIVE, n_best=len(expected), constraints=limits)
    assert_finds(beam_search(tiny.model, tiny.memory, options), expected, texts)


@pytest.mark.parametrize("seed", [*SEEDS, 7])
def test_a_narrow_beam_with_required_words_is_the_plain_grid_search(tiny, allowed, texts, seed):
    """Captions compete with those that have said as many of the required words."""
    tiny = tiny(seed)
    required, beam = {5, 7}, 2
    limits = Constraints(max_length=6, require=tuple(required))
    blocks = [[((), 0.0)], [], []]
    for _ in range(limits.max_length + 1):
        candidates = [[], [], []]
        for words, log_prob in (row for block in blocks for row in block):
            if words and words[-1] == END:
                candidates[2].append((words, log_prob))
                continue
            next_word = tiny.next_word(tiny.memory, words).tolist()
            for word in allowed(words, limits):
                said = len(required & {*words, word})
                if word != END or said == 2:
                    candidates[said].append(((*words, word), log_prob + next_word[word]))
        blocks = [
            sorted(block, key=lambda row: -row[1] / len(row[0]) ** 0.7)[:beam]
            for block in candidates
        ]
    expected = [(words, log_prob / len(words) ** 0.7) for words, log_prob in blocks[2]]
    options = BeamOptions(beam, n_best=2, constraints=limits)
    assert_finds(beam_search(tiny.model, tiny.memory, options), expected, texts)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_narrow_beam_says_all_required_words(tiny, texts, seed):
    tiny = tiny(seed, pictures=5, end_bias=2.0)
    limits = Constraints(max_length=6, no_repeat_ngram=2, require=(7, 5, 6))
    hypotheses = beam_search(tiny.model, tiny.memory, BeamOptions(2, 2, constraints=limits))
    forced = describe_words(tiny.model, tiny.memory, hypotheses.tokens).log_probs.sum(-1)
    torch.testing.assert_close(hypotheses.log_probs, forced, rtol=0, atol=1e-4)
    assert all({5, 6, 7} <= set(c) for tokens in hypotheses.tokens for c in texts(tokens))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_group_is_the_plain_search(tiny, texts, seed):
    tiny = tiny(seed, pictures=3)
    plain = beam_search(tiny.model, tiny.memory, BeamOptions(beam=2, n_best=2))
    diverse = beam_search(tiny.model, tiny.memory, BeamOptions(2, 6, groups=3))
    for i in range(3):
        assert set(texts(plain.tokens[i])) <= set(texts(diverse.tokens[i]))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("diversity", [0.3, 2.0])
def test_each_group_avoids_the_words_of_those_before(tiny, allowed, texts, seed, diversity):
    """Against a plain search of one picture; captions that have ended repel nobody."""
    tiny = tiny(seed, end_bias=1.0)
    limits = Constraints(max_length=5)
    groups = [[((), 0.0)] for _ in range(3)]
    for _ in range(limits.max_length + 1):
        said = []
        for g, rows in enumerate(groups):
            candidates = []
            for words, log_prob in rows:
                if words and words[-1] == END:
                    candidates.append((log_prob / len(words) ** 0.7, words, log_prob, None))
                    continue
                next_word = tiny.next_word(tiny.memory, words).tolist()
                for word in allowed(words, limits):
                    total = log_prob + next_word[word]
                    rank = total / (len(words) + 1) ** 0.7 - diversity * said.count(word)
                    candidates.append((rank, (*words, word), total, word))
            best = sorted(candidates, key=lambda candidate: -candidate[0])[:2]
            groups[g] = [(words, log_prob) for _, words, log_prob, _ in best]
            said += [word for *_, word in best if word is not None]
    options = BeamOptions(2, 6, groups=3, diversity=diversity, constraints=limits)
    hypotheses = beam_search(tiny.model, tiny.memory, options)
    assert sorted(texts(hypotheses.tokens[0])) == sorted(
        words for rows in groups for words, _ in rows
    )


def test_strong_diversity_makes_groups_begin_differently(tiny):
    tiny = tiny(1, pictures=4)
    hypotheses = beam_search(tiny.model, tiny.memory, BeamOptions(1, 4, groups=4, diversity=100.0))
    assert all(len(set(first.tolist())) == 4 for first in hypotheses.tokens[:, :, 0])


def test_a_caption_that_two_groups_find_is_not_offered_twice_before_others(tiny, texts):
    tiny = tiny(0, pictures=4)
    plain = beam_search(tiny.model, tiny.memory, BeamOptions(beam=2, n_best=2))
    alike = beam_search(tiny.model, tiny.memory, BeamOptions(2, 2, groups=2, diversity=0.0))
    assert torch.equal(alike.tokens, plain.tokens)


def test_rows_that_hold_no_caption_come_after_all_that_do(tiny):
    tiny = tiny(0)
    options = BeamOptions(6, 12, groups=2, constraints=Constraints(1))  # of four words: each twice
    scores = beam_search(tiny.model, tiny.memory, options).scores[0]
    assert scores.isfinite().tolist() == [True] * 8 + [False] * 4


def test_a_model_in_double_precision_is_searched_too(tiny):
    tiny = tiny(0, pictures=3)
    single = beam_search(tiny.model, tiny.memory, BeamOptions(n_best=3))
    tiny.model.double()
    memory = {name: t.double() if t.is_floating_point() else t for name, t in tiny.memory.items()}
    double = beam_search(tiny.model, memory, BeamOptions(n_best=3))
    assert torch.equal(single.tokens, double.tokens)
    torch.testing.assert_close(single.log_probs, double.log_probs, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam, groups and n_best must be at least 1"),
        ({"groups": 0}, "beam, groups and n_best must be at least 1"),
        ({"n_best": 0}, "beam, groups and n_best must be at least 1"),
        ({"diversity": -0.5}, "diversity must be at least 0"),
        ({"beam": 2, "n_best": 3}, "3 captions need more than 2 beams; widen the beam"),
        (
            {"groups": 2, "constraints": Constraints(require=(5,))},
            "required words cannot be combined with diverse groups",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError) as error:
        BeamOptions(**options)
    assert str(error.value) == f"decoding: {message}"


@pytest.mark.parametrize("words", [30, 2048, 2100])
def test_the_likeliest_words_are_those_of_a_whole_vocabulary(words):
    torch.manual_seed(0)
    next_word = torch.randn(3, 2, 5, words)
    next_word[..., -1] = 9.0  # behind the last whole chunk
    next_word[0, 0, 0] = float("-inf")
    next_word[0, 0, 0, 7] = 0.0  # a row that has ended has one word to go on with
    values, indices = _likeliest(next_word, 4)
    torch.testing.assert_close(values, next_word.topk(4).values, rtol=0, atol=0)
    torch.testing.assert_close(next_word.gather(-1, indices), values, rtol=0, atol=0)
    assert (indices.sort(-1).values.diff() > 0).all()  # none of them twice
