import pytest
import torch

from sightline.models.attention import MultiHeadAttention, join_heads, split_heads

REGIONS, WORDS, WIDTH, HEADS = 5, 3, 8, 2


@pytest.fixture
def visible():
    """The second picture lacks two regions."""
    return torch.tensor([[True] * 5, [True, False, True, True, False]])[:, None, None]


def create(**options):
    torch.manual_seed(0)
    return MultiHeadAttention(WIDTH, HEADS, **options).double()


def inputs():
    torch.manual_seed(1)
    words = torch.randn(2, WORDS, WIDTH, dtype=torch.float64, requires_grad=True)
    regions = torch.randn(2, REGIONS, WIDTH, dtype=torch.float64, requires_grad=True)
    return words, regions


@pytest.mark.parametrize("scale_by_length", [False, True])
def test_the_fused_path_equals_the_explicit_one_in_values_and_gradients(visible, scale_by_length):
    attention, (words, regions) = create(scale_by_length=scale_by_length), inputs()
    direction = torch.randn(2, WORDS, WIDTH).double()
    results = []
    for weights in (False, True):
        look = attention(words, attention.remember(regions), visible, weights=weights)
        assert (look.raw is not None) == weights
        leaves = [words, regions, *attention.parameters()]
        results.append((look.output, *torch.autograd.grad((look.output * direction).sum(), leaves)))
    for fused, explicit in zip(*results, strict=True):
        torch.testing.assert_close(fused, explicit, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale_by_length", [False, True])
def test_each_head_is_the_printed_equation(visible, scale_by_length):
    """One query, one head and one key at a time (paper 3, eq. 1-3)."""
    attention, (words, regions) = create(scale_by_length=scale_by_length), inputs()
    look = attention(words, attention.remember(regions), visible, weights=True)
    d = WIDTH // HEADS
    for picture, there in enumerate(([0, 1, 2, 3, 4], [0, 2, 3])):
        tau = (d + len(there) * scale_by_length) ** 0.5
        for word in range(WORDS):
            heads = []
            for head in range(HEADS):
                rows = slice(head * d, (head + 1) * d)
                query = attention.query.weight[rows] @ words[picture, word]
                energies = [
                    query @ (attention.key.weight[rows] @ regions[picture, i]) / tau for i in there
                ]
                alphas = torch.stack(energies).softmax(0)
                torch.testing.assert_close(look.raw[picture, head, word, there], alphas)
                values = [attention.value.weight[rows] @ regions[picture, i] for i in there]
                heads.append(sum(a * v for a, v in zip(alphas, values, strict=True)))
            output = attention.output.weight @ torch.cat(heads)
            torch.testing.assert_close(look.output[picture, word], output)
    assert (look.raw[1, :, :, [1, 4]] == 0).all()


def test_it_equals_torchs_own(visible):
    attention, (words, regions) = create(), inputs()
    theirs = torch.nn.MultiheadAttention(WIDTH, HEADS, bias=False, batch_first=True).double()
    with torch.no_grad():
        projections = [attention.query.weight, attention.key.weight, attention.value.weight]
        theirs.in_proj_weight.copy_(torch.cat(projections))
        theirs.out_proj.weight.copy_(attention.output.weight)
    output, weights = theirs(
        words, regions, regions, key_padding_mask=~visible[:, 0, 0], average_attn_weights=False
    )
    look = attention(words, attention.remember(regions), visible, weights=True)
    torch.testing.assert_close(look.output, output, rtol=0, atol=1e-12)
    torch.testing.assert_close(look.raw, weights, rtol=0, atol=1e-12)


def test_the_length_a_query_is_scaled_by_is_what_it_may_see():
    """A word's τ is the same whether later words are there, masked, or not."""
    attention, (_, places) = create(scale_by_length=True), inputs()
    causal = torch.ones(REGIONS, REGIONS, dtype=torch.bool).tril()
    whole = attention(places, attention.remember(places), causal, weights=True)
    for t in range(REGIONS):
        so_far = attention.remember(places[:, : t + 1])
        alone = attention(places[:, t : t + 1], so_far, causal[t : t + 1, : t + 1], weights=True)
        torch.testing.assert_close(whole.output[:, t : t + 1], alone.output)
        torch.testing.assert_close(whole.raw[:, :, t : t + 1, : t + 1], alone.raw)


def test_dropout_is_of_the_weights_and_only_in_training(visible):
    attention, (words, regions) = create(dropout=0.5), inputs()
    memory = attention.remember(regions)
    first, second = attention(words, memory, visible), attention(words, memory, visible)
    assert not torch.equal(first.output, second.output)
    torch.testing.assert_close(first.raw.sum(-1), torch.ones(2, HEADS, WORDS).double())
    torch.manual_seed(7)
    dropped = attention(words, memory, visible).output
    torch.manual_seed(7)
    kept = attention.dropout(first.raw) @ memory["values"]
    torch.testing.assert_close(dropped, attention.output(join_heads(kept)))
    attention.eval()
    assert torch.equal(
        attention(words, memory, visible).output, attention(words, memory, visible).output
    )


def test_heads_split_and_join():
    x = torch.arange(12.0).view(1, 2, 6)
    heads = split_heads(x, 3)
    assert heads.shape == (1, 3, 2, 2)
    assert heads[0, 1, 0].tolist() == [2, 3]
    assert torch.equal(join_heads(heads), x)
