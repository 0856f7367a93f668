"""What holds for every registered captioner, on tiny ones in double precision."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from sightline.models.interface import CaptionModel, select_pictures, select_rows
from sightline.regions import Regions
from sightline.text.vocabulary import END, PAD, START
from tiny_models import CASES, REGION_DIM, VOCABULARY, create


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def case(request):
    return request.param


@pytest.fixture
def model(case):
    return create(*case)


@pytest.fixture
def regions():
    torch.manual_seed(1)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1, 3:] = False
    mask[2, 0] = False
    corner = torch.rand(3, 5, 2) / 2
    boxes = torch.cat([corner, corner + torch.rand(3, 5, 2) / 2], -1)
    return Regions(torch.randn(3, 5, REGION_DIM).double(), mask, boxes.double())


@pytest.fixture
def tokens():
    """Two captions of each of three pictures, of lengths 1 to 6."""
    torch.manual_seed(2)
    tokens = torch.randint(4, VOCABULARY, (3, 2, 8))
    tokens[..., 0] = START
    for row, length in zip(tokens.flatten(0, 1), (1, 2, 3, 4, 5, 6), strict=True):
        row[length + 1] = END
        row[length + 2 :] = PAD
    return tokens


def assert_same(one, other):
    """Two outcomes of `forward`."""
    torch.testing.assert_close(one.logits, other.logits, rtol=0, atol=1e-10)
    torch.testing.assert_close(one.attention, other.attention, rtol=0, atol=1e-10)
    assert one.signals.keys() == other.signals.keys()
    for name, signal in one.signals.items():
        torch.testing.assert_close(signal, other.signals[name], rtol=0, atol=1e-10)


def part(unrolled, *index):
    """Some pictures, rows and words of an outcome."""
    signals = {name: signal[index] for name, signal in unrolled.signals.items()}
    return type(unrolled)(unrolled.logits[index], unrolled.attention[index], signals)


def test_shapes(model, regions, tokens):
    unrolled = model(regions, tokens)
    assert unrolled.logits.shape == (3, 2, 8, VOCABULARY)
    assert unrolled.attention.shape == (3, 2, 8, 5)
    assert all(signal.shape == (3, 2, 8) for signal in unrolled.signals.values())


def test_forward_equals_the_loop_of_step(model, regions, tokens):
    assert_same(model(regions, tokens), CaptionModel.unroll(model, tokens, model.encode(regions)))


def test_a_batch_equals_its_pictures_one_by_one(model, regions, tokens):
    together = model(regions, tokens)
    for i in range(3):
        one = slice(i, i + 1)
        assert_same(part(together, one), model(regions[one], tokens[one]))


def test_rows_of_a_picture_do_not_know_of_each_other(model, regions, tokens):
    together = model(regions, tokens)
    for k in range(2):
        row = (slice(None), slice(k, k + 1))
        assert_same(part(together, *row), model(regions, tokens[row]))


def test_what_follows_the_end_changes_nothing_before_it(model, regions, tokens):
    whole = model(regions, tokens)
    ends = (tokens == END).nonzero().tolist()
    assert len(ends) == 6
    for picture, row, end in ends:
        here = (slice(picture, picture + 1), slice(row, row + 1))
        cut = tokens[here][..., : end + 1]
        longer = torch.cat([cut, torch.full((1, 1, 9), 5)], -1)
        until_end = part(whole, *here, slice(0, end + 1))
        assert_same(until_end, model(regions[here[0]], cut))
        assert_same(
            until_end,
            part(model(regions[here[0]], longer), slice(None), slice(None), slice(0, end + 1)),
        )


def test_masked_regions_change_nothing(model, regions, tokens):
    garbage = torch.full((3, 2, REGION_DIM), 1e3).double()
    wider = Regions(
        torch.cat([garbage, regions.vectors, -garbage], 1),
        functional.pad(regions.mask, (2, 2)),
        functional.pad(regions.boxes, (0, 0, 2, 2)),
    )
    plain, padded = model(regions, tokens), model(wider, tokens)
    assert (padded.attention[..., [0, 1, -2, -1]] == 0).all()
    assert_same(plain, padded._replace(attention=padded.attention[..., 2:-2]))


def test_attention_is_a_distribution_over_the_regions_there_are(model, regions, tokens):
    attention = model(regions, tokens).attention
    torch.testing.assert_close(attention.sum(-1), torch.ones(3, 2, 8).double())
    assert (attention >= 0).all()
    assert (attention.transpose(1, 3)[~regions.mask] == 0).all()


def test_the_picture_and_every_previous_word_matter(model, regions, tokens):
    logits = model(regions, tokens).logits
    others = Regions(regions.vectors.flip(0), regions.mask, regions.boxes)
    assert (model(others, tokens).logits[[0, 2]] - logits[[0, 2]]).abs().amax(-1).min() > 1e-6
    changed = tokens.clone()
    changed[:, :, 1] = (tokens[:, :, 1] - 4 + 1) % (VOCABULARY - 4) + 4
    difference = (model(regions, changed).logits - logits).abs().amax(-1)
    assert (difference[:, :, 0] < 1e-10).all()
    assert (difference[:, :, 1:] > 1e-10).all()


def test_saving_and_loading_changes_nothing(case, model, regions, tokens, tmp_path):
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    other = create(*case, seed=99)
    before = other(regions, tokens)
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    after = other(regions, tokens)
    assert not torch.allclose(before.logits, after.logits)
    assert torch.equal(after.logits, model(regions, tokens).logits)


def test_evaluation_is_deterministic(model, regions, tokens):
    first, second = model(regions, tokens), model(regions, tokens)
    assert torch.equal(first.logits, second.logits)
    assert torch.equal(first.attention, second.attention)


def test_every_parameter_learns(model, regions, tokens):
    model.train()
    for _ in range(8):  # several throws of dropout and of half-sampling
        unrolled = model(regions, tokens[..., :-1])
        loss = functional.cross_entropy(
            unrolled.logits.flatten(0, 2), tokens[..., 1:].flatten(), ignore_index=PAD
        )
        if "log_location" in unrolled.signals:  # what the likelihood alone does not train
            loss = loss - unrolled.signals["log_location"].mean()
        if "mask" in unrolled.signals:
            loss = (
                loss
                - model(regions, tokens[..., :-1], perturb=True).perturbed.logits[..., 4].mean()
            )
        if hasattr(model, "discriminator"):
            loss = loss + model(regions, tokens[..., :-1], tokens).verdicts.mean()
        loss.backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert idle == []


def test_selected_rows_go_on_as_the_rows_they_come_from(model, regions):
    memory = model.encode(regions)
    words = torch.tensor([[4, 5, 6], [7, 8, 9], [10, 4, 5]])
    state = model.step(torch.full((3, 3), START), model.start(memory, 3), memory).state
    state = model.step(words, state, memory).state
    parents = torch.tensor([[2, 0, 0], [1, 1, 1], [0, 1, 2]])
    next_words = torch.tensor([[6, 6, 7], [8, 9, 10], [4, 5, 6]])
    selected = model.step(next_words, select_rows(state, parents), memory)
    for picture, row in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 1)]:
        history = [START, int(words[picture, parents[picture, row]]), int(next_words[picture, row])]
        alone = model(regions[picture : picture + 1], torch.tensor([[history]]))
        torch.testing.assert_close(selected.logits[picture, row], alone.logits[0, 0, -1])
        torch.testing.assert_close(selected.attention[picture, row], alone.attention[0, 0, -1])


def test_pictures_that_stay_do_not_notice_those_that_leave(model, regions):
    memory = model.encode(regions)
    first = model.step(torch.full((3, 2), START), model.start(memory, 2), memory)
    words = torch.tensor([[4, 5], [6, 7], [8, 9]])
    all_logits = model.step(words, first.state, memory).logits
    keep = torch.tensor([True, False, True])
    kept = model.step(
        words[keep], select_pictures(first.state, keep), select_pictures(memory, keep)
    )
    torch.testing.assert_close(kept.logits, all_logits[keep])


def test_select_rows_reorders_picture_by_picture():
    state = {"x": torch.tensor([[[1.0], [2.0]], [[3.0], [4.0]]])}
    selected = select_rows(state, torch.tensor([[1, 1, 0], [0, 1, 1]]))
    assert selected["x"].squeeze(-1).tolist() == [[2, 2, 1], [3, 4, 4]]
