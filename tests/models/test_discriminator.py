import pytest
import torch
from torch.nn import functional

from sightline.models.discriminator import LAYERS, Discriminator
from sightline.text.vocabulary import END, PAD, START

WORDS = 12


def create(picture_width=0, width=8, dropout=0.5):
    torch.manual_seed(0)
    return Discriminator(WORDS, width, 6, picture_width, dropout).double().eval()


@pytest.fixture
def captions():
    """Three captions of each of two pictures, of lengths 1 to 6."""
    torch.manual_seed(1)
    captions = torch.randint(4, WORDS, (2, 3, 8))
    captions[..., 0] = START
    for row, length in zip(captions.flatten(0, 1), (1, 2, 3, 4, 5, 6), strict=True):
        row[length + 1] = END
        row[length + 2 :] = PAD
    return captions


@pytest.fixture(params=[0, 5], ids=["words", "picture"])
def case(request):
    """A discriminator, and what it sees of the pictures."""
    torch.manual_seed(2)
    picture = torch.randn(2, request.param).double() if request.param else None
    return create(request.param), picture


def test_the_extractor_has_three_layers():
    assert LAYERS == len(create().extractor) == 3


def test_features_of_prefixes_are_those_of_the_whole_and_of_single_steps(case, captions):
    judge, picture = case
    features = judge.features(captions, picture)
    assert features.shape == (2, 3, 8, 8)
    cells = torch.zeros(2, 3, LAYERS, 8).double()
    for t in range(8):
        prefix = judge.features(captions[..., : t + 1], picture)
        torch.testing.assert_close(prefix, features[:, :, : t + 1], rtol=0, atol=1e-12)
        one, cells = judge.step(captions[..., t], cells, picture)
        torch.testing.assert_close(one, features[:, :, t], rtol=0, atol=1e-12)


def test_a_verdict_is_drawn_from_the_features_after_the_last_word(case, captions):
    judge, picture = case
    verdicts = judge(captions, picture)
    of_prefixes = judge.verdicts(judge.features(captions, picture))
    for b, k, end in (captions == END).nonzero().tolist():
        assert verdicts[b, k].item() == pytest.approx(of_prefixes[b, k, end].item())
    longer = functional.pad(captions, (0, 4), value=PAD)
    torch.testing.assert_close(judge(longer, picture), verdicts)


def test_no_caption_knows_of_another(case, captions):
    """Neither the next one nor the one before: real and made-up captions are judged apart."""
    judge, picture = case
    together = judge(captions, picture)
    turned = judge(captions.flip(1), picture).flip(1)
    torch.testing.assert_close(turned, together, rtol=0, atol=1e-12)
    for b in range(2):
        one = None if picture is None else picture[b : b + 1]
        for k in range(3):
            alone = judge(captions[b : b + 1, k : k + 1], one)
            torch.testing.assert_close(alone[0, 0], together[b, k], rtol=0, atol=1e-12)


def test_a_verdict_depends_on_the_aspects_alone():
    judge = create()
    features = torch.randn(40, 8).double()
    blind = torch.linalg.svd(judge.aspect.weight)[2][6:]  # directions without an aspect
    assert len(blind) == 2
    moved = features + 3 * blind.sum(0)
    torch.testing.assert_close(judge.aspects(moved), judge.aspects(features))
    torch.testing.assert_close(judge.verdicts(moved), judge.verdicts(features))
    assert judge.aspects(features).shape == (40, 6)


def test_the_picture_matters_if_it_is_seen(captions):
    judge = create(picture_width=5)
    one, other = torch.randn(2, 2, 5).double()
    assert (judge(captions, one) - judge(captions, other)).abs().min() > 1e-9


def test_it_learns_to_tell_captions_from_shuffled_ones():
    torch.manual_seed(3)

    def draw(count):
        """Sentences of a grammar: an article (4, 5), a noun (6 to 8), a verb (9 to 11); twice."""
        words = [torch.randint(low, high, (count, 2)) for low, high in ((4, 6), (6, 9), (9, 12))]
        right = torch.stack(words, -1).flatten(1)
        wrong = torch.stack([row[torch.randperm(6)] for row in right])
        both = torch.stack([right, wrong], 1)
        return functional.pad(functional.pad(both, (1, 0), value=START), (0, 1), value=END)

    judge = create(width=16, dropout=0.2).float().train()
    optimizer = torch.optim.Adam(judge.parameters(), 0.01)
    for _ in range(150):
        real, fake = judge(draw(32)).unbind(1)
        loss = functional.softplus(-real).mean() + functional.softplus(fake).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        real, fake = judge.eval()(draw(200)).unbind(1)
    assert float(((real > 0).float().mean() + (fake < 0).float().mean()) / 2) > 0.9
