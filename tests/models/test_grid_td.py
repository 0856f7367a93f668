import pytest
import torch

from sightline.models.adaptive_attention import AdaptiveAttentionConfig
from sightline.models.grid_td import GridTD

CONFIG = AdaptiveAttentionConfig(word_width=4, state_width=3, attention_width=6, dropout=0.5)


@pytest.fixture
def model(tell):
    return tell(GridTD(9, 7, CONFIG))


def test_a_caption_is_the_papers_equations(model, four_regions, by_hand):
    """x¹_t = [h²_{t-1} : v_g : w_t], and the language LSTM takes [ĉ_t : h¹_t] (paper 4, fig. 2)."""
    times, plus, relu = by_hand.times, by_hand.plus, by_hand.relu
    vectors = four_regions.vectors[0, :3].tolist()
    regions = [relu(times(model.project.weight.tolist(), vector)) for vector in vectors]
    mean = [sum(column) / 3 for column in zip(*vectors, strict=True)]
    overall = relu(times(model.project_mean.weight.tolist(), mean))
    from_language, recurrence = model.from_language, model.top_down.from_hidden
    w_x = torch.cat(
        [from_language.weight[:15], model.mean_to_gates.weight, model.word_to_gates.weight], 1
    ).tolist()
    top_down_bias = (recurrence.bias + from_language.bias[:15]).tolist()
    w_language = torch.cat([model.to_language.weight, from_language.weight[15:]], 1).tolist()
    hidden_1, cell_1, hidden_2, cell_2 = ([0.0] * 3 for _ in range(4))

    unrolled = model(four_regions, torch.tensor([[[1, 5, 6]]]))
    assert list(unrolled.signals) == ["sentinel"]
    for t, word in enumerate((1, 5, 6)):
        x = hidden_2 + overall + model.embedding.weight[word].tolist()
        from_hidden = times(recurrence.weight.tolist(), hidden_1)
        sums = plus(times(w_x, x), from_hidden, top_down_bias)
        hidden_1, cell_1, sentinel = by_hand.top_down(sums, cell_1)
        context, alphas, beta = by_hand.attend(model.adaptive, regions, hidden_1, sentinel)
        sums = plus(
            times(w_language, context + hidden_1 + hidden_2), from_language.bias[15:].tolist()
        )
        hidden_2, cell_2 = by_hand.lstm(sums, cell_2)
        logits = plus(
            times(model.output.weight.tolist(), plus(context, hidden_2)),
            model.output.bias.tolist(),
        )
        assert unrolled.logits[0, 0, t].tolist() == pytest.approx(logits)
        assert unrolled.attention[0, 0, t].tolist() == pytest.approx([*alphas, 0.0])
        assert unrolled.signals["sentinel"][0, 0, t].item() == pytest.approx(beta)


def test_both_lstms_start_from_nothing_and_have_states_of_their_own(model, four_regions):
    memory = model.encode(four_regions)
    state = model.start(memory, rows=2)
    assert list(state) == ["hidden", "cell", "language_hidden", "language_cell"]
    assert all(tensor.shape == (1, 2, 3) and not tensor.any() for tensor in state.values())
    state = model.step(torch.tensor([[1, 5]]), state, memory).state
    assert len({tensor.sum().item() for tensor in state.values()}) == 4


def test_both_lstms_of_a_fresh_model_remember():
    model = GridTD(9, 7, CONFIG)
    for linear in (model.top_down.from_hidden, model.from_language):
        i, f, o, g = linear.bias[-12:].chunk(4)
        assert (f == 1).all()
        assert not torch.cat([i, o, g, linear.bias[:-12]]).any()
