import pytest
import torch

from sightline.errors import ConfigError
from sightline.models.adaptive_attention import AdaptiveAttention, AdaptiveAttentionConfig

CONFIG = AdaptiveAttentionConfig(word_width=4, state_width=3, attention_width=6, dropout=0.5)


@pytest.fixture
def model(tell):
    return tell(AdaptiveAttention(9, 7, CONFIG))


def test_a_caption_is_the_papers_equations(model, four_regions, by_hand):
    """x_t = [w_t : v_g], one step after the other, number by number (paper 4, section 3.1)."""
    times, plus, relu = by_hand.times, by_hand.plus, by_hand.relu
    vectors = four_regions.vectors[0, :3].tolist()
    regions = [relu(times(model.project.weight.tolist(), vector)) for vector in vectors]
    mean = [sum(column) / 3 for column in zip(*vectors, strict=True)]
    overall = relu(times(model.project_mean.weight.tolist(), mean))
    w_x = torch.cat([model.word_to_gates.weight, model.mean_to_gates.weight], 1).tolist()
    recurrence = model.top_down.from_hidden
    hidden, cell = [0.0] * 3, [0.0] * 3

    unrolled = model(four_regions, torch.tensor([[[1, 5, 6]]]))
    assert list(unrolled.signals) == ["sentinel"]
    for t, word in enumerate((1, 5, 6)):
        x = model.embedding.weight[word].tolist() + overall
        from_hidden = times(recurrence.weight.tolist(), hidden)
        sums = plus(times(w_x, x), from_hidden, recurrence.bias.tolist())
        hidden, cell, sentinel = by_hand.top_down(sums, cell)
        context, alphas, beta = by_hand.attend(model.adaptive, regions, hidden, sentinel)
        logits = plus(
            times(model.output.weight.tolist(), plus(context, hidden)), model.output.bias.tolist()
        )
        assert unrolled.logits[0, 0, t].tolist() == pytest.approx(logits)
        assert unrolled.attention[0, 0, t].tolist() == pytest.approx([*alphas, 0.0])
        assert unrolled.signals["sentinel"][0, 0, t].item() == pytest.approx(beta)


def test_what_depends_on_the_picture_alone_is_kept_once_for_all_its_rows(model, four_regions):
    memory = model.encode(four_regions)
    assert {name: tuple(tensor.shape) for name, tensor in memory.items()} == {
        "regions": (1, 4, 3),
        "keys": (1, 4, 6),
        "barrier": (1, 4),
        "mean_gates": (1, 15),
    }
    state = model.start(memory, rows=5)
    assert all(tensor.shape == (1, 5, 3) and not tensor.any() for tensor in state.values())


def test_dropout_is_on_regions_their_mean_words_and_output(model, four_regions):
    dropped = []
    model.dropout.register_forward_hook(lambda _, given, __: dropped.append(given[0].shape))
    model(four_regions, torch.tensor([[[1, 5]]]))
    assert dropped == [(1, 4, 3), (1, 4), (1, 1, 2, 4), (1, 1, 2, 3)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"attention_width": 0},
            "model: word_width, state_width and attention_width must be at least 1",
        ),
        ({"dropout": -0.1}, "model: dropout must be from 0 to below 1, not -0.1"),
    ],
)
def test_sizes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError) as error:
        AdaptiveAttentionConfig(**options)
    assert str(error.value) == message
