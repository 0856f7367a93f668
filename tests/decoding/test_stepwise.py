import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.decoding.constraints import Constraints
from sightline.decoding.stepwise import SampleOptions, greedy, sample, sample_words, truncate
from sightline.decoding.words import describe_words
from sightline.errors import ConfigError
from sightline.text.vocabulary import END, PAD

SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("limits", [Constraints(6), Constraints(6, 4, 2, avoid=(5,))])
def test_greedy_takes_the_likeliest_word_that_it_may(tiny, allowed, texts, seed, limits):
    tiny = tiny(seed, pictures=4, end_bias=1.0)
    hypotheses = greedy(tiny.model, tiny.memory, limits)
    for i in range(4):
        words = ()
        while END not in words:
            next_word = tiny.next_word(tiny.picture(i), words).tolist()
            words += (max(allowed(words, limits), key=next_word.__getitem__),)
        assert texts(hypotheses.tokens[i]) == [words]


def test_greedy_pads_what_ended_and_scores_as_forced_decoding(tiny):
    tiny = tiny(7, pictures=8, end_bias=1.5)
    hypotheses = greedy(tiny.model, tiny.memory)
    assert len(set((hypotheses.tokens != PAD).sum(-1).flatten().tolist())) > 1
    forced = describe_words(tiny.model, tiny.memory, hypotheses.tokens).log_probs.sum(-1)
    torch.testing.assert_close(hypotheses.log_probs, forced, rtol=0, atol=1e-4)


class TestDraw:
    def test_words_come_as_often_as_they_should(self):
        """Pearson's statistic of two distributions over 50 words, some of them impossible."""
        weights = torch.rand(2, 50, generator=torch.Generator().manual_seed(0)) ** 4
        weights[:, [0, 7, 8, 49]] = 0
        chances = weights / weights.sum(-1, keepdim=True)
        rows = 40_000
        drawn = sample_words(chances[:, None].expand(2, rows, 50), torch.Generator().manual_seed(1))
        assert drawn.shape == (2, rows)
        for chance, words in zip(chances, drawn, strict=True):
            counts = torch.bincount(words, minlength=50)
            assert (counts[chance == 0] == 0).all()
            expected = rows * chance[chance > 0]
            statistic = ((counts[chance > 0] - expected) ** 2 / expected).sum()
            assert statistic < 80  # 46 words: 45 on average, 80 once in a thousand

    def test_the_same_seed_draws_the_same_words(self):
        chances = torch.rand(4, 5, 30).softmax(-1)
        first, again, other = (
            sample_words(chances, torch.Generator().manual_seed(s)) for s in (3, 3, 4)
        )
        assert torch.equal(first, again)
        assert not torch.equal(first, other)

    @pytest.mark.parametrize("point", [0.0, 1 - 2**-24])
    def test_at_the_ends_of_the_unit_interval_no_impossible_word_is_drawn(self, monkeypatch, point):
        monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.full(shape, point))
        # Seven sevenths add up to something else than one.
        chances = torch.tensor([0.0, *[1 / 7] * 7, 0.0, 0.0]).expand(3, 2, -1)
        words = sample_words(chances, torch.Generator())
        assert (words == (1 if point == 0 else 7)).all()
        certain = torch.tensor([[0.0, 0.0, 1.0, 0.0]])
        assert sample_words(certain, torch.Generator()).tolist() == [2]


@pytest.mark.parametrize("seed", SEEDS)
def test_sampled_captions_end_once_and_score_as_forced_decoding(tiny, texts, seed):
    tiny = tiny(seed, pictures=3, end_bias=1.0)
    options = SampleOptions(20, temperature=1.5, top_k=4, top_p=0.9, seed=seed)
    drawn = sample(tiny.model, tiny.memory, options)
    forced = describe_words(tiny.model, tiny.memory, drawn.tokens).log_probs.sum(-1)
    torch.testing.assert_close(drawn.log_probs, forced, rtol=0, atol=1e-4)
    for caption in (caption for tokens in drawn.tokens for caption in texts(tokens)):
        assert caption.index(END) == len(caption) - 1


def test_the_same_seed_draws_the_same_captions(tiny):
    tiny = tiny(0, pictures=3)
    draws = [
        sample(tiny.model, tiny.memory, SampleOptions(10, seed=seed)).tokens for seed in (1, 1, 2)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"), [(1.0, 0, 1.0), (2.0, 0, 1.0), (1.0, 3, 1.0), (1.5, 0, 0.8)]
)
def test_captions_come_as_often_as_the_model_says(tiny, allowed, temperature, top_k, top_p, alike):
    """Pearson's statistic over all captions of up to two words stays where chance leaves it."""
    tiny, limits = tiny(2), Constraints(max_length=2)
    chances: dict[tuple[int, ...], float] = {}

    def follow(words, chance):
        if END in words:
            chances[words] = chance
            return
        weights = torch.full((8,), float("-inf"))
        next_word = tiny.next_word(tiny.memory, words)
        for word in allowed(words, limits):
            weights[word] = next_word[word] / temperature
        for word, part in enumerate(truncate(weights, top_k, top_p).tolist()):
            if part:
                follow((*words, word), chance * part)

    follow((), 1.0)
    assert sum(chances.values()) == pytest.approx(1, abs=1e-5)
    options = SampleOptions(5000, temperature, top_k, top_p, 7, alike, limits)
    rows = sample(tiny.model, tiny.memory, options).tokens[0].tolist()
    drawn = [tuple(word for word in row if word != PAD) for row in rows]
    assert set(drawn) <= set(chances)
    likely = {caption: 5000 * chance for caption, chance in chances.items() if chance > 0.002}
    pearson = sum((drawn.count(c) - mean) ** 2 / mean for c, mean in likely.items())
    assert len(likely) >= 5
    assert pearson < len(likely) + 4 * (2 * len(likely)) ** 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_sampling_turns_greedy_as_temperature_falls(tiny, seed):
    tiny = tiny(seed, pictures=4)
    cold = sample(tiny.model, tiny.memory, SampleOptions(temperature=1e-4))
    assert torch.equal(cold.tokens, greedy(tiny.model, tiny.memory).tokens)


def test_rows_that_ended_may_wait_for_others_under_every_limit(tiny, texts):
    tiny = tiny(0, pictures=4)
    for n in (1, 2):
        limits = Constraints(max_length=4, no_repeat_ngram=n)
        drawn = sample(tiny.model, tiny.memory, SampleOptions(50, 3.0, constraints=limits))
        captions = [caption for tokens in drawn.tokens for caption in texts(tokens)]
        assert {len(caption) for caption in captions} == {2, 3, 4, 5}
        for caption in captions:
            ngrams = [caption[i : i + n] for i in range(len(caption) - n)]
            assert len(set(ngrams)) == len(ngrams)


weights = st.lists(st.floats(-8, 0, width=32), min_size=1, max_size=12).map(torch.tensor)


@given(weights, st.integers(1, 15))
@settings(deadline=None)
def test_top_k_keeps_the_k_likeliest(log_weights, k):
    kept = truncate(log_weights, k, 1.0)
    assert kept.count_nonzero() == min(k, len(log_weights))
    assert kept.sum().item() == pytest.approx(1, abs=1e-5)
    if k < len(log_weights):
        assert log_weights[kept > 0].min() >= log_weights[kept == 0].max()


@given(weights, st.floats(0.01, 0.99))
@settings(deadline=None)
def test_the_nucleus_is_the_least_set_of_that_mass(log_weights, p):
    whole, kept = log_weights.softmax(-1), truncate(log_weights, 0, p)
    inside = kept > 0
    mass = whole[inside].sum().item()
    assert mass >= p - 1e-5
    assert mass - whole[inside].min().item() < p + 1e-5  # without its last word it is too little
    assert kept.sum().item() == pytest.approx(1, abs=1e-5)
    torch.testing.assert_close(kept[inside], whole[inside] / mass)
    if not inside.all():
        assert whole[inside].min() >= whole[~inside].max()


@pytest.mark.parametrize(
    "options",
    [
        {"samples": 0},
        {"temperature": 0.0},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.1},
    ],
)
def test_ways_of_sampling_that_cannot_be_are_refused(options):
    with pytest.raises(ConfigError, match=r"^decoding: samples >= 1, temperature > 0, .* needed$"):
        SampleOptions(**options)


def test_required_words_need_a_beam(tiny):
    tiny, limits = tiny(), Constraints(require=(5,))
    with pytest.raises(ConfigError, match=r"^decoding: required words need a beam search$"):
        SampleOptions(constraints=limits)
    with pytest.raises(ConfigError, match=r"^decoding: required words need a beam search$"):
        greedy(tiny.model, tiny.memory, limits)


def test_sampled_alike_a_picture_has_captions_of_its_own(tiny):
    tiny = tiny(0, pictures=3)
    options = SampleOptions(6, seed=3, alike=True)
    together = sample(tiny.model, tiny.memory, options).tokens
    for n in range(len(together)):
        memory = {name: part[[n]] for name, part in tiny.memory.items()}
        alone = sample(tiny.model, memory, options).tokens
        length = alone.shape[2]
        assert torch.equal(alone[0], together[n, :, :length])
        assert (together[n, :, length:] <= END).all()
    assert len({tuple(row) for row in together[0].tolist()}) > 1
