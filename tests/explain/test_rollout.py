"""Attention rolled out with gradients: by hand, against the paper's sums, and what is refused."""

import pytest
import torch
from torch import nn

from sightline.adapters.tiny import tiny
from sightline.adapters.wrap import adapt
from sightline.errors import NotApplicableError
from sightline.explain.rollout import gradient_rollout, roll_out
from sightline.explain.targets import Targets
from sightline.models.interface import CaptionModel, Unrolled
from sightline.regions import Regions
from tiny_models import REGION_DIM, VOCABULARY, create


class OneLook(CaptionModel):
    """A word looks at the regions with one head; the logit is what it saw, weighed."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 1)
        nn.init.ones_(self.embedding.weight)

    def encode(self, regions):
        return {"values": regions.vectors}

    def start(self, memory, rows=1):
        raise NotImplementedError

    step = start

    def unroll(self, tokens, memory):
        query = self.embedding(tokens)  # (B, 1, T, 1)
        values = memory["values"][:, None]  # (B, 1, L, 1)
        seen = torch.softmax(query @ values.mT, -1) @ values
        logits = seen * torch.arange(5.0) * torch.tensor([1, 1, 1, -1, 1])
        return Unrolled(logits, torch.zeros(1, 1, tokens.shape[2], values.shape[2]), {})


def test_one_layer_by_hand() -> None:
    # Energies are 0, ln 2 and ln 5: weights are 1/8, 2/8 and 5/8. The logit of word 2 is twice
    # their sum of values: the gradients of the weights are twice the values.
    values = torch.tensor([1.0, 2.0, 5.0]).log()
    regions = Regions(values[None, :, None], torch.ones(1, 3) > 0, torch.zeros(1, 3, 4))
    asked = torch.tensor([[0, 0]]), torch.tensor([[2, 3]])
    found = gradient_rollout(Targets(OneLook(), regions, torch.tensor([[[1]]]), *asked))
    expected = torch.tensor([1.0, 2.0, 5.0]) / 8 * 2 * values
    torch.testing.assert_close(found.total[0, 0], expected.sum())
    torch.testing.assert_close(found.regions[0, 0], expected)
    assert found.regions[0, 1].abs().max() == 0  # what speaks against a word is left out
    assert found.words.abs().max() == 0  # words looked at no word


def test_layers_by_hand() -> None:
    among = torch.tensor([[[0.5, 0.0], [0.2, 0.4]]])  # words at words
    regions = torch.tensor([[[0.0, 0.3], [0.1, 0.0]]])  # regions at regions
    looks = torch.tensor([[[0.6, 0.0], [0.0, 0.8]]])  # words at regions
    kinds = ["picture", "text", "across", "text"]
    of_text, across = roll_out(kinds, [regions, among, looks, among], 2, 2)
    twice = (torch.eye(2) + among) @ (torch.eye(2) + among)
    torch.testing.assert_close(of_text, twice)
    # Rows of what was added sum to one: (0.5, 0) is (1, 0), (0.2, 0.4) is (1/3, 2/3).
    words = torch.tensor([[2.0, 0.0], [1 / 3, 5 / 3]])
    picture = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    once = words.T @ looks @ picture
    torch.testing.assert_close(across, once + among @ once)


@pytest.fixture(scope="module")
def pixels():
    return torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(3))


def adapted(family: str, pixels):
    encoder, model, _ = adapt(*tiny(family), size=32)
    with torch.no_grad():
        vectors = encoder.vectors(pixels)
    mask = torch.ones(vectors.shape[:2], dtype=torch.bool)
    regions = Regions(vectors, mask, torch.zeros(*mask.shape, 4))
    tokens, asked = torch.tensor([[[1, 12, 15]]]), torch.tensor([[2]])
    return model, Targets(model, regions, tokens, asked, torch.tensor([[17]]))


def own_attention(model, pixels, names):
    """The attention that transformers itself reports, times its gradient, positive, mean of heads;
    of the logit of word 17 after the prompt and two words.
    """
    ids = torch.cat([model.starts[1], model.pieces[torch.tensor([12, 15])]])[None]
    inputs = model.inputs(ids) | {"pixel_values": pixels}
    with torch.enable_grad():
        for parameter in model.model.parameters():
            parameter.requires_grad_(True)
        output = model.model(**inputs, output_attentions=True)
        layers = [layer for name in names for layer in getattr(output, name)]
        gradients = torch.autograd.grad(output.logits[0, -1, model.pieces[17]], layers)
    return [
        (layer * gradient).clamp(min=0).mean(1)[0].detach()
        for layer, gradient in zip(layers, gradients, strict=True)
    ]


def test_words_and_picture_in_one_sequence(pixels) -> None:
    model, targets = adapted("llava", pixels)
    found = gradient_rollout(targets)
    first, second = own_attention(model, pixels, ["attentions"])
    whole = torch.eye(len(first))
    whole = (whole + second) @ (whole + first)
    image = model.starts[1] == model.model.config.image_token_id
    torch.testing.assert_close(found.regions[0, 0], whole[-1, : len(image)][image])
    prompt = whole[-1, : len(image)][~image].sum()
    words = torch.stack([prompt, whole[-1, -2], whole[-1, -1] - 1])
    torch.testing.assert_close(found.words[0, 0], words)
    assert found.regions.max() > 0


def test_words_that_look_at_the_picture(pixels) -> None:
    model, targets = adapted("vision-encoder-decoder", pixels)
    found = gradient_rollout(targets)
    names = ["decoder_attentions", "cross_attentions"]
    first, second, look, again = own_attention(model, pixels, names)
    layer_1, layer_2 = first, first + second + second @ first
    scaled = [one / one.sum(-1, keepdim=True) + torch.eye(3) for one in (layer_1, layer_2)]
    expected = scaled[0].T @ look
    expected = expected + second @ expected + scaled[1].T @ again
    torch.testing.assert_close(found.regions[0, 0], expected[-1])
    torch.testing.assert_close(found.words[0, 0], layer_2[-1])


def test_as_many_words_as_regions_are_told_apart() -> None:
    torch.manual_seed(0)
    regions = Regions(
        torch.randn(1, 5, REGION_DIM).double(), torch.ones(1, 5) > 0, torch.rand(1, 5, 4).double()
    )
    tokens = torch.randint(4, VOCABULARY, (1, 1, 5))
    asked = torch.tensor([[3, 1]]), torch.tensor([[5, 6]])
    for name, variant in (("transformer", 0), ("aligned_transformer", 3)):
        model = create(name, variant)
        same = gradient_rollout(Targets(model, regions, tokens, *asked))
        fewer = gradient_rollout(Targets(model, regions, tokens[..., :-1], *asked))
        torch.testing.assert_close(same.regions, fewer.regions)
        torch.testing.assert_close(same.words[..., :-1], fewer.words)
        assert (same.regions.sum(-1) > 0).all()


@pytest.mark.parametrize(
    ("family", "says"),
    [
        ("blip-2", "BLIP-2: its words see the picture through a third sequence, of queries"),
        ("florence2", "Florence-2: its words see .* a third sequence, of picture and prompt"),
    ],
)
def test_a_third_sequence_is_refused(family, says, pixels) -> None:
    with pytest.raises(NotApplicableError, match=says):
        gradient_rollout(adapted(family, pixels)[1])


def test_a_captioner_without_layers_of_attention_is_refused() -> None:
    regions = Regions(
        torch.randn(1, 5, REGION_DIM).double(), torch.ones(1, 5) > 0, torch.rand(1, 5, 4).double()
    )
    asked = torch.tensor([[[1, 4]]]), torch.tensor([[1]]), torch.tensor([[4]])
    with pytest.raises(NotApplicableError, match="SoftAttention: it has no attention of layers"):
        gradient_rollout(Targets(create("soft_attention", 0), regions, *asked))
    with pytest.raises(NotApplicableError, match="3 positions look at 4, but the text has 2"):
        gradient_rollout(Targets(Sideways(), regions, *asked))


class Sideways(OneLook):
    """Its words look at something that is neither text nor picture."""

    def unroll(self, tokens, memory):
        unrolled = super().unroll(tokens, {"values": memory["values"][..., :1].float()})
        energies = unrolled.logits.sum((-1, -2))[..., None, None].expand(-1, -1, 3, 4)
        return unrolled._replace(logits=unrolled.logits + torch.softmax(energies, -1).mean())
