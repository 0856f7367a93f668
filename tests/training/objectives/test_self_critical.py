"""The policy gradient, against enumeration; the reward, against the metrics."""

from itertools import product

import pytest
import torch
from PIL import Image

import sightline
from sightline.data.dataset import CaptionedImage
from sightline.decoding.words import with_start
from sightline.errors import ConfigError
from sightline.models.registry import create_model
from sightline.regions import Regions
from sightline.text.vocabulary import END, PAD, Vocabulary
from sightline.training.batch import CaptionBatch
from sightline.training.objectives.policy import policy_log_probs
from sightline.training.objectives.registry import create_objective
from sightline.training.objectives.reward import Reward

WORDS = ("dog", "cat")
LONGEST = 2


def picture(*captions):
    return CaptionedImage("x.png", Image.new("RGB", (4, 4)), captions, "train")


IMAGES = [picture("dog cat", "dog"), picture("cat cat", "a cat")]


def make_objective(**options):
    objective = create_objective(
        {"name": "self_critical", "max_length": LONGEST, "samples": 4, **options}
    )
    objective.prepare(IMAGES, Vocabulary(WORDS))
    return objective


def make_model(dropout=0.0):
    torch.manual_seed(0)
    sizes = {"region_width": 4, "word_width": 4, "state_width": 5, "attention_width": 3}
    model = create_model("soft_attention", 4 + len(WORDS), 3, {**sizes, "dropout": dropout})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model.double()


def make_batch():
    torch.manual_seed(1)
    vectors = torch.randn(2, 3, 3).double()
    regions = Regions(vectors, torch.ones(2, 3, dtype=torch.bool), torch.zeros(2, 3, 4))
    targets = torch.tensor([[[4, 5, END], [4, END, PAD]], [[5, 5, END], [5, END, PAD]]])
    return CaptionBatch(regions, with_start(targets), targets, 1.0, torch.tensor([0, 1]))


def every_caption():
    """All captions of one or two words, ended."""
    ids = range(4, 4 + len(WORDS))
    rows = [[*words, END] for n in (1, 2) for words in product(ids, repeat=n)]
    return torch.tensor([row + [PAD] * (LONGEST + 1 - len(row)) for row in rows])


def flat_gradient(loss, model):
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return torch.cat([g.flatten() for g in gradients if g is not None])


def exact_gradient(objective, model, batch):
    """Of -Σ p(y) r(y) over every caption y, per picture; and the probabilities."""
    captions = every_caption().expand(2, -1, -1)
    logits = model(batch.regions, with_start(captions)).logits / objective.options.temperature
    probability = policy_log_probs(logits, captions, objective.limits).sum(-1).exp()
    rewards = objective.reward(captions, batch.images)
    return flat_gradient(-(probability * rewards).sum(), model), probability


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_policy_is_a_distribution_over_the_captions_that_can_be_drawn(temperature):
    objective, model, batch = make_objective(temperature=temperature), make_model(), make_batch()
    _, probability = exact_gradient(objective, model, batch)
    torch.testing.assert_close(probability.sum(1), torch.ones(2).double())
    # And captions are drawn by it.
    many = make_objective(samples=4000, temperature=temperature)
    drawn, _ = many.sample(model, batch)
    for number, caption in enumerate(every_caption()):
        share = (drawn == caption[: drawn.shape[2]]).all(-1).double().mean(1)
        torch.testing.assert_close(share, probability[:, number].detach(), atol=0.03, rtol=0)


@pytest.mark.parametrize(
    "options", [{"baseline": "others"}, {"baseline": "greedy"}, {"temperature": 0.5}]
)
def test_the_surrogate_has_the_policy_gradient_as_its_mean(options):
    model, batch = make_model(), make_batch()
    objective = make_objective(samples=32, **options)
    exact, _ = exact_gradient(objective, model, batch)
    torch.manual_seed(2)
    # The loss weighs a picture's samples as its captions, of which there are two.
    estimates = torch.stack(
        [
            flat_gradient(objective.terms(model, batch, 0)["surrogate"].total / 2, model)
            for _ in range(80)
        ]
    )
    error = estimates.std(0) / len(estimates) ** 0.5
    z = ((estimates.mean(0) - exact) / error.clamp(min=1e-12))[error > 1e-9]
    assert len(z) > 100
    assert z.abs().max() < 4.5
    assert z.abs().mean() < 1.2  # 0.8 is expected


def mean_gradient(objective, model, batch, draws):
    """And its standard error."""
    estimates = torch.stack(
        [
            flat_gradient(objective.terms(model, batch, 0)["surrogate"].total / 2, model)
            for _ in range(draws)
        ]
    )
    return estimates.mean(0), estimates.std(0) / draws**0.5


def test_the_gradient_is_that_of_the_policy_in_a_captioner_that_trains_with_dropout():
    """Captions are drawn without dropout: scored under it, they are not the policy's own."""
    model, batch = make_model(dropout=0.35), make_batch()
    exact, _ = exact_gradient(make_objective(), model.eval(), batch)
    model.train()
    torch.manual_seed(2)
    mean, error = mean_gradient(make_objective(samples=32), model, batch, 80)
    z = ((mean - exact) / error.clamp(min=1e-12))[error > 1e-9]
    assert len(z) > 100
    assert z.abs().max() < 4.5
    assert z.abs().mean() < 1.2
    assert model.dropout.training  # as it was
    biased, error = mean_gradient(make_objective(samples=32, dropout=True), model, batch, 80)
    z = ((biased - exact) / error.clamp(min=1e-12))[error > 1e-9]
    assert z.abs().mean() > 1.5  # the test can tell


def test_a_reward_that_all_captions_share_teaches_nothing(monkeypatch):
    model, batch, objective = make_model(), make_batch(), make_objective()
    monkeypatch.setattr(objective, "reward", lambda tokens, images: torch.full((2, 4), 3.0))
    terms = objective.terms(model, batch, 0)
    assert float(terms["baseline"].total / batch.captions) == pytest.approx(3.0)
    assert flat_gradient(terms["surrogate"].total, model).abs().max() < 1e-6


def test_terms_are_means_over_samples():
    model, batch = make_model(), make_batch()
    objective = make_objective(reward={"bleu1": 1.0}, sampling="beam", samples=3)
    terms = objective.terms(model, batch, 0)
    captions, _ = objective.sample(model, batch)
    rewards = objective.reward(captions, batch.images)
    assert captions.shape[:2] == (2, 3)
    assert float(terms["reward"].total / batch.captions) == pytest.approx(float(rewards.mean()))
    assert terms["reward"].weight == 0
    length = (captions > END).sum() / 6
    assert float(terms["length"].total / batch.captions) == pytest.approx(float(length))


def test_a_stand_in_weighs_nothing():
    batch = make_batch()
    batch = CaptionBatch(batch.regions, batch.inputs, batch.targets, 0.0, batch.images)
    terms = make_objective().terms(make_model(), batch, 0)
    assert all(float(term.total.detach()) == 0 for term in terms.values())


def test_sampling_leaves_the_model_training_and_follows_the_checkpointed_generator():
    model, batch, objective = make_model().train(), make_batch(), make_objective()
    torch.manual_seed(5)
    first, _ = objective.sample(model, batch)
    second, _ = objective.sample(model, batch)
    assert model.training
    torch.manual_seed(5)
    assert torch.equal(objective.sample(model, batch)[0], first)
    assert first.shape != second.shape or not torch.equal(first, second)


IN_WORDS = [
    picture("a dog runs over the wide green field", "the dog runs", "a zebra"),
    picture("two cats sit on a wall", "cats on a wall of stone"),
    picture("a man", "a man walks his dog on the street"),
]


@pytest.mark.parametrize(
    ("name", "metric", "score"),
    [
        ("cider_d", "cider-d", "CIDEr-D"),
        ("bleu4", "bleu", "BLEU-4"),
        ("bleu1", "bleu", "BLEU-1"),
        ("rouge_l", "rouge-l", "ROUGE-L"),
        ("chair", "chair", "CHAIRi"),
    ],
)
def test_the_reward_is_the_metrics_own_score_per_caption(name, metric, score):
    """Also where the references have words the vocabulary lacks (zebra, stone, street)."""
    texts = ["a dog runs over the field", "two cats on a wall", "a man"]
    others = ["the wide green dog", "a dog on a wall", "a man runs on a dog"]
    vocabulary = Vocabulary(sorted({word for text in texts + others for word in text.split()}))
    pairs = zip(texts, others, strict=True)
    rows = [[[*vocabulary.encode(text), END] for text in pair] for pair in pairs]
    longest = max(len(row) for pair in rows for row in pair)
    padded = [[row + [PAD] * (longest - len(row)) for row in pair] for pair in rows]
    weight = -2.0 if name == "chair" else 2.0
    reward = Reward({name: weight}, IN_WORDS, vocabulary, count_end=False)
    ours = reward(torch.tensor(padded), torch.arange(3))
    references = [image.captions for image in IN_WORDS]
    for column, captions in enumerate((texts, others)):
        theirs = sightline.score(captions, references, [metric])[score]
        assert ours[:, column].tolist() == pytest.approx(weight * theirs.per_image, rel=1e-6)
    assert ours.unique().numel() > 1


def test_weights_add_up_and_the_end_counts_as_a_word():
    vocabulary = Vocabulary(IN_WORDS[0].captions[0].split())
    whole = vocabulary.encode(IN_WORDS[0].captions[0])
    cut = whole[:-2]  # "... over the wide": its n-grams are all there, but nobody stops so
    longest = len(whole) + 1
    rows = torch.tensor([[[*row, END] + [PAD] * (longest - len(row) - 1) for row in (whole, cut)]])
    which = torch.tensor([0])
    with_end, without = (
        Reward({"cider_d": 1.0}, IN_WORDS, vocabulary, count)(rows, which)[0]
        for count in (True, False)
    )
    assert with_end[0] - with_end[1] > without[0] - without[1]
    bleu = Reward({"bleu4": 1.0}, IN_WORDS, vocabulary)(rows, which)[0]
    both = Reward({"cider_d": 1.0, "bleu4": 0.5}, IN_WORDS, vocabulary)(rows, which)[0]
    torch.testing.assert_close(both, with_end + 0.5 * bleu)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": {"cidre_d": 1}}, "no metric is called 'cidre_d'; did you mean 'cider_d'?"),
        ({"reward": {}}, "give a metric"),
        ({"reward": {"cider_d": 1, "chair": 0.5}}, "give chair a weight below 0"),
        ({"samples": 1}, "samples: must be at least 2"),
        ({"temperature": 0}, "objective.temperature: must be above 0"),
        (
            {"temperature": 0.5, "sampling": "beam"},
            "temperature: cannot be set with sampling: beam",
        ),
        ({"samples": 0, "baseline": "greedy"}, "objective.samples: must be at least 1, not 0"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        create_objective({"name": "self_critical", **options})


def test_the_masks_of_an_aligned_captioner_play_against_the_reward():
    torch.manual_seed(0)
    sizes = {"width": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 8}
    model = create_model("aligned_transformer", 4 + len(WORDS), 3, {**sizes, "dropout": 0.0})
    model = model.double().train()
    batch, objective = make_batch(), make_objective(penalty=0.5)
    terms = objective.terms(model, batch, 0)
    assert terms["perturbed"].weight == -1
    assert terms["penalty"].weight == 0.5
    assert 0 < float(terms["mask"].total / batch.tokens) < 1
    # Each term trains its own side alone.
    for name, of_masks in (("surrogate", False), ("perturbed", True), ("penalty", True)):
        model.zero_grad()
        terms[name].total.backward(retain_graph=True)
        trained = [n for n, p in model.named_parameters() if p.grad is not None and p.grad.any()]
        assert trained
        assert all((".mask." in n) == of_masks for n in trained), (name, trained)
