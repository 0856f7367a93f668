"""Laws of LRP, on a tiny captioner of every kind in double precision."""

import math

import pytest
import torch
from torch import nn

from sightline.errors import SightlineError
from sightline.explain.gradients import grad_cam, gradient_input
from sightline.explain.lrp.method import lrp
from sightline.explain.lrp.mode import LRPMode
from sightline.explain.targets import Targets
from sightline.models.interface import CaptionModel, Unrolled
from sightline.models.registry import create_model
from sightline.regions import Regions
from tiny_models import CASES, REGION_DIM, VOCABULARY, create


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def model(request):
    return create(*request.param)


@pytest.fixture
def regions():
    torch.manual_seed(1)
    mask = torch.ones(2, 5, dtype=torch.bool)
    mask[1, 3] = False
    return Regions(torch.randn(2, 5, REGION_DIM).double(), mask, torch.rand(2, 5, 4).double())


@pytest.fixture
def targets(model, regions):
    return find_targets(model, regions)


def test_whoever_asks_may_want_no_gradients_himself(targets):
    with torch.no_grad():
        found = lrp(targets)
    torch.testing.assert_close(found.regions, lrp(targets).regions)


def find_targets(model, regions):
    """Five words of two pictures' captions, the first two at one place."""
    torch.manual_seed(2)
    tokens = torch.randint(4, VOCABULARY, (2, 1, 6))
    tokens[..., 0] = 1
    places = torch.tensor([[0, 0, 2, 4, 5], [5, 5, 1, 0, 3]])
    words = torch.randint(4, VOCABULARY, (2, 5))
    words[:, 1] = (words[:, 0] - 3) % (VOCABULARY - 4) + 4
    return Targets(model, regions, tokens, places, words)


def accounted(evidence):
    return evidence.regions.sum(-1) + evidence.words.sum(-1) + evidence.bias + evidence.epsilon


def test_the_forward_pass_is_unchanged(model, targets):
    plain = model(targets.regions, targets.tokens)
    with LRPMode(2, dtype=torch.float64):
        ruled = model(targets.regions, targets.tokens)
    torch.testing.assert_close(ruled.logits, plain.logits, rtol=0, atol=1e-10)
    torch.testing.assert_close(ruled.attention, plain.attention, rtol=0, atol=1e-10)


def test_relevance_is_conserved_but_for_what_is_absorbed(model, targets):
    evidence = lrp(targets)
    logits = model(targets.regions, targets.tokens).logits
    for b in range(2):
        expected = logits[b, 0, targets.places[b], targets.words[b]]
        torch.testing.assert_close(evidence.total[b], expected)
    torch.testing.assert_close(accounted(evidence), evidence.total, rtol=0, atol=1e-9)
    assert (evidence.epsilon.abs() > 1e-6).all()  # ε does hold something back
    assert (evidence.regions.abs().sum(-1) > 1e-6).all()
    assert (evidence.words.abs().sum(-1) > 1e-6).all()


def test_without_biases_and_epsilon_all_of_it_arrives(model, targets):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("bias", "init_hidden", "init_cell")):
                parameter.zero_()
    evidence = lrp(targets, epsilon=0.0)
    assert (evidence.epsilon == 0).all()
    if not any("decoder" in name for name, _ in model.named_parameters()):
        assert (evidence.bias == 0).all()  # Transformers add positions, which are constants, too
    torch.testing.assert_close(accounted(evidence), evidence.total, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", [lrp, gradient_input])
def test_words_together_are_words_one_by_one(method, model, targets):
    together = method(targets)
    for b in range(2):
        for n in range(5):
            one = Targets(
                model,
                targets.regions[b : b + 1],
                targets.tokens[b : b + 1],
                targets.places[b : b + 1, n : n + 1],
                targets.words[b : b + 1, n : n + 1],
            )
            alone = method(one)
            for whole, part in zip(together, alone, strict=True):
                if whole is not None:
                    torch.testing.assert_close(whole[b, n], part[0, 0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", [lrp, grad_cam])
def test_later_words_change_nothing(method, model, targets):
    tokens = targets.tokens.clone()
    tokens[0, 0, 3:] = (tokens[0, 0, 3:] - 3) % (VOCABULARY - 4) + 4
    changed = method(Targets(model, targets.regions, tokens, targets.places, targets.words))
    before = method(targets)
    for n, place in enumerate(targets.places[0].tolist()):
        same = torch.allclose(before.regions[0, n], changed.regions[0, n], rtol=0, atol=1e-12)
        assert same == (place < 3)
        assert (before.words[0, n, place + 1 :] == 0).all()
        if place < 3:
            torch.testing.assert_close(before.words[0, n], changed.words[0, n])


def test_regions_that_are_not_there_have_no_relevance(model, targets):
    assert (lrp(targets).regions[1, :, 3] == 0).all()
    assert (grad_cam(targets).regions[1, :, 3] == 0).all()


def test_weights_keep_no_gradient(model, targets):
    lrp(targets)
    assert all(p.requires_grad and p.grad is None for p in model.parameters())


class Linear(CaptionModel):
    """The next word's logits are linear in the mean region and the words so far."""

    def __init__(self, squash=None):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 4)
        self.region = nn.Linear(REGION_DIM, VOCABULARY, bias=False)
        self.word = nn.Linear(4, VOCABULARY, bias=False)
        self.squash = squash

    def encode(self, regions):
        return {"mean": self.region(regions.vectors).sum(1) / 5}

    def start(self, memory, rows=1):
        raise NotImplementedError

    def step(self, tokens, state, memory):
        raise NotImplementedError

    def unroll(self, tokens, memory):
        words = self.word(self.embedding(tokens)).unbind(2)
        sums = [sum(words[: t + 1]) for t in range(len(words))]
        logits = torch.stack(sums, 2) + memory["mean"][:, None, None]
        if self.squash is not None:
            logits = self.squash(logits)
        return Unrolled(logits, logits[..., :5].softmax(-1), {})


def test_of_a_linear_model_it_is_gradient_times_input(regions):
    torch.manual_seed(0)
    targets = find_targets(Linear().double(), regions)
    found, gradient = lrp(targets, epsilon=0.0), gradient_input(targets)
    torch.testing.assert_close(found.regions, gradient.regions)
    torch.testing.assert_close(found.words, gradient.words)
    torch.testing.assert_close(gradient.regions.sum(-1) + gradient.words.sum(-1), gradient.total)


def test_an_operation_without_a_rule_is_refused(regions):
    targets = find_targets(Linear(torch.nn.functional.softplus).double(), regions)
    with pytest.raises(SightlineError, match="no rule for 'softplus'"):
        lrp(targets)


def test_algorithm_1_number_by_number():
    """Two words, one state, one region: adaptive attention with every weight a plain number."""
    sizes = {"word_width": 1, "state_width": 1, "attention_width": 1}
    model = create_model("adaptive_attention", 6, 1, sizes).double().eval()
    state = model.state_dict()
    numbers = {
        "project.weight": [[0.8]],  # W_a
        "project_mean.weight": [[0.5]],  # W_b
        "embedding.weight": [[0.0], [0.7], [0.0], [0.0], [-0.4], [0.9]],
        "word_to_gates.weight": [[0.1], [0.2], [0.3], [0.4], [0.6]],  # sentinel, i, f, o, g
        "mean_to_gates.weight": [[0.2], [-0.1], [0.1], [0.3], [0.5]],
        "top_down.from_hidden.weight": [[0.3], [0.2], [-0.2], [0.1], [0.7]],
        "top_down.from_hidden.bias": [0.05, 0.1, 1.0, 0.0, 0.02],
        "adaptive.key.weight": [[0.4]],
        "adaptive.query.weight": [[-0.3]],
        "adaptive.sentinel_key.weight": [[0.6]],
        "adaptive.score": [0.9],
        "output.weight": [[0.0], [0.0], [0.0], [0.0], [1.1], [-0.7]],  # fc
        "output.bias": [0.0, 0.0, 0.0, 0.0, 0.3, 0.1],
    }
    assert numbers.keys() == state.keys()
    model.load_state_dict({name: torch.tensor(value) for name, value in numbers.items()})
    a, stab = 1.5, lambda z: z + math.copysign(0.01, z)
    sigmoid = lambda x: 1 / (1 + math.exp(-x))  # noqa: E731

    # Forward: the start word, then word 4; asked for word 5.
    v, v_g = 0.8 * a, 0.5 * a
    words, h, m, steps = [0.7, -0.4], 0.0, 0.0, []
    for w in words:
        word, mean = (
            [k * x for k in gates]
            for gates, x in (([0.1, 0.2, 0.3, 0.4, 0.6], w), ([0.2, -0.1, 0.1, 0.3, 0.5], v_g))
        )
        entering = [x + y for x, y in zip(word, mean, strict=True)]
        own = [
            k * h + b
            for k, b in zip([0.3, 0.2, -0.2, 0.1, 0.7], [0.05, 0.1, 1.0, 0.0, 0.02], strict=True)
        ]
        z = [x + y for x, y in zip(entering, own, strict=True)]
        s_gate, i, f, o = map(sigmoid, z[:4])
        before = (h, m)
        kept, new = f * m, i * math.tanh(z[4])
        m = kept + new
        h, s = o * math.tanh(m), s_gate * math.tanh(m)
        e = 0.9 * math.tanh(0.4 * v - 0.3 * h)
        b = 0.9 * math.tanh(0.6 * s - 0.3 * h)
        beta = math.exp(b) / (math.exp(e) + math.exp(b))
        c = (1 - beta) * v + beta * s
        steps.append(
            {
                "word": word[4],
                "mean": mean[4],
                "entering": entering[4],
                "own": own[4],
                "z": z[4],
                "before": before,
                "kept": kept,
                "new": new,
                "m": m,
                "h": h,
                "s": s,
                "beta": beta,
                "c": c,
            }
        )
    last = steps[-1]
    logit = -0.7 * (last["c"] + last["h"]) + 0.1

    # Backward, line by line.
    r_sum = -0.7 * (last["c"] + last["h"]) / stab(logit) * logit  # 1
    r_c = last["c"] / stab(last["c"] + last["h"]) * r_sum  # 2
    r_h = last["h"] / stab(last["c"] + last["h"]) * r_sum
    r_m, r_v, r_vg, r_words = 0.0, 0.0, 0.0, [0.0, 0.0]
    for t in (1, 0):  # 3
        at = steps[t]
        r_s = at["beta"] * at["s"] / stab(at["c"]) * r_c  # 5
        r_context = (1 - at["beta"]) * v / stab(at["c"]) * r_c
        r_v += v / stab(v) * r_context
        r_m += r_h + r_s  # 6: the LSTM and the sentinel leave their gates nothing
        r_new, r_kept = at["new"] / stab(at["m"]) * r_m, at["kept"] / stab(at["m"]) * r_m
        r_entering = at["entering"] / stab(at["z"]) * r_new
        r_own = at["own"] / stab(at["z"]) * r_new
        r_word = at["word"] / stab(at["entering"]) * r_entering
        r_words[t] = at["word"] / stab(at["word"]) * r_word  # 7
        r_vg += at["mean"] / stab(at["entering"]) * r_entering
        r_h = 0.7 * at["before"][0] / stab(at["own"]) * r_own
        r_m, r_c = r_kept, 0.0
    mean = steps[0]["mean"]
    r_region = v / stab(v) * r_v  # 9
    r_region += a / stab(a) * v_g / stab(v_g) * mean / stab(mean) * r_vg

    regions = Regions(torch.tensor([[[a]]]).double(), torch.ones(1, 1) > 0, torch.zeros(1, 1, 4))
    question = torch.tensor([[1]]), torch.tensor([[5]])
    evidence = lrp(Targets(model, regions, torch.tensor([[[1, 4]]]), *question))
    # (The numbers of a model are loaded through single precision.)
    assert evidence.total.item() == pytest.approx(logit, abs=1e-6)
    assert evidence.words[0, 0].tolist() == pytest.approx(r_words, abs=1e-6)
    assert evidence.regions.item() == pytest.approx(r_region, abs=1e-6)
