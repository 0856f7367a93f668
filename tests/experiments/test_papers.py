"""The experiments of papers 1, 2 and 4, on tiny captioners of scenes that know nothing."""

import functools
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from sightline.captioner import Captioner
from sightline.data.dataset import build_vocabulary
from sightline.data.scenes import make_scene_dataset
from sightline.encoders.encoder import create_encoder
from sightline.errors import ConfigError, DataError
from sightline.experiments import (
    paper2_adversarial,
    paper2_figure4,
    paper4_figure3,
    paper4_table2,
    paper4_table3,
    paper4_table4,
    paper4_table5,
)
from sightline.experiments.arms_table import compare_arms, gains_in
from sightline.experiments.claims import judge
from sightline.experiments.estimate import (
    Estimate,
    estimate,
    estimate_difference,
    estimate_gap,
)
from sightline.experiments.experiment import Subject
from sightline.experiments.paper4_table2 import above_random, stop_words_depend_more
from sightline.experiments.registry import find_experiment
from sightline.experiments.runner import run_experiment
from sightline.experiments.training_tasks import recipe_of
from sightline.metrics.word_labels import wrong_words
from sightline.models.registry import MODELS, create_model
from sightline.recipe import load_recipe
from sightline.training.recipe_check import check

PICTURES = 4


@functools.cache
def world():
    dataset = make_scene_dataset(20, 2, PICTURES, size=64)
    encoder = create_encoder("efficientnet_lite0", stage="stage4", size=64)
    return dataset.split("test"), encoder, build_vocabulary(dataset.split("train"))


@functools.cache
def captioner(name):
    """Untrained, but far enough from nothing that its captions differ."""
    _, encoder, vocabulary = world()
    torch.manual_seed(1)
    options = MODELS.builtin[name].tiny[0]
    model = create_model(name, len(vocabulary), encoder.dim, options).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    captioner = Captioner(encoder, model, vocabulary)
    # No word twice: so there are words of every kind.
    captioner.options = captioner.options.changed(
        {"beam": 1, "max_length": 9, "min_length": 8, "no_repeat_ngram": 1}
    )
    return captioner


def subjects(*names):
    return [Subject(name, name, world()[0], functools.partial(captioner, name)) for name in names]


RUNS = {
    "paper1-table1": (("soft_attention",), {"metrics": ("bleu-no-bp", "bleu")}),
    "paper1-figure2": (("soft_attention", "hard_attention"), {"shown": 1}),
    "paper1-figure5": (("soft_attention",), {"shown": 3}),
    "paper2-figure3": (("hierarchical",), {"shown": 1, "permutations": 50}),
    "paper2-figure4": (("hierarchical",), {"shown": 1, "permutations": 50}),
    "paper4-table1": (
        ("adaptive_attention", "grid_td"),
        {"metrics": ("cider", "rouge-l"), "bertscore": False},
    ),
    "paper4-table2": (("adaptive_attention",), {}),
    "paper4-table3": (("adaptive_attention",), {"said_more_than": 0}),
    "paper4-figure4": (("grid_td",), {"shown": 2}),
    "paper4-figure5": (("grid_td",), {"shown": 3}),
    "paper4-table5": (("grid_td",), {"said_more_than": 0}),
}


@pytest.mark.parametrize("name", RUNS)
def test_an_experiment_runs_and_answers_its_claims(name, tmp_path):
    models, values = RUNS[name]
    experiment = find_experiment(name)
    options = experiment.options(**values)
    findings = run_experiment(experiment, subjects(*models), options, tmp_path)
    for file in ("table.md", "data.json", "figure.png", "figure.svg"):
        assert (tmp_path / file).stat().st_size > 100
    data = json.loads((tmp_path / "data.json").read_text())
    for claim in experiment.claims:
        answer = claim.test(data)
        assert answer.verdict in ("reproduced", "not reproduced", "not tested")
        assert answer.sentence.endswith(".")
        assert "nan" not in answer.sentence
    for model in models:
        assert f"| {model} |" in findings.table
    before = (tmp_path / "figure.svg").read_bytes()
    again = [Subject(s.name, s.model, s.images, lambda: None) for s in subjects(*models)]
    run_experiment(experiment, again, options, tmp_path)  # from what is kept: nothing is loaded
    assert (tmp_path / "figure.svg").read_bytes() == before


# --- table 2 -------------------------------------------------------------------------------------


def ablated(kind, method, random, picture):
    return {"word": "x", "kind": kind, "drops": {"lrp": method, "random": random}}


def test_ablations_are_counted_by_kind_and_paired_with_random_ones():
    stop, thing = paper4_table2.KINDS
    records = [
        {
            "run": "r",
            "model": "m",
            "picture": str(n),
            "words": [ablated(stop, True, n % 2 == 0, n), ablated(thing, n % 2 == 0, False, n)],
        }
        for n in range(40)
    ]
    findings = paper4_table2.conclude(records, paper4_table2.Options(methods=("lrp",)))
    drops = findings.data["drops"]["r"]
    assert drops[stop]["lrp"]["mean"] == 1
    assert drops[stop]["random"]["mean"] == 0.5
    assert drops[thing]["above random"]["lrp"]["mean"] == 0.5
    assert above_random(findings.data).verdict == "reproduced"
    assert stop_words_depend_more(findings.data).verdict == "reproduced"
    for record in records:  # as good as random
        for word in record["words"]:
            word["drops"]["random"] = word["drops"]["lrp"]
    findings = paper4_table2.conclude(records, paper4_table2.Options(methods=("lrp",)))
    assert above_random(findings.data).verdict == "not reproduced"


def test_adaptive_attention_is_held_against_grid_td_over_runs():
    def answer(adaptive, grid, seeds=3):
        stop, thing = paper4_table2.KINDS
        drops, models = {}, {}
        for model, share in (("adaptive_attention", adaptive), ("grid_td", grid)):
            for seed in range(seeds):
                mean = {"lrp": one(share + 0.01 * seed)}
                drops[f"{model}-{seed}"] = {stop: mean, thing: mean}
                models[f"{model}-{seed}"] = model
        return paper4_table2.adaptive_relies_more({"drops": drops, "models": models})

    assert answer(0.9, 0.6).verdict == "reproduced"
    assert answer(0.6, 0.9).verdict == "not reproduced"
    assert answer(0.9, 0.6, seeds=2).verdict == "not tested"
    assert answer(0.9, 0.6).sentence == (
        "Less likely with adaptive attention than with grid-TD: +30.0 (+27.7 to +32.3) points of "
        "stop words, +30.0 (+27.7 to +32.3) points of object words."
    )
    nobody = paper4_table2.adaptive_relies_more({"drops": {}})  # as it was stored before
    assert nobody.sentence.startswith("No run of adaptive attention was compared")


def test_runs_tuned_by_lrp_inference_are_paired_with_their_controls():
    def claims(**gains):
        rows, models = {}, {}
        for model, gain in gains.items():
            for seed in range(3):
                for arm, more in (("control", 0.0), ("lrp-inference", gain)):
                    name = f"{model}-{arm}-{seed}"
                    rows[name], models[name] = {"mAP": one(0.1 * seed + more)}, model
        data = {"rows": rows, "models": models, "pictures": dict.fromkeys(rows, 100)}
        return [claim.test(data) for claim in find_experiment("paper4-table5").claims]

    raised, more = claims(adaptive_attention=0.03, grid_td=0.03)
    assert raised.verdict == "reproduced"
    assert raised.sentence == "+3.0 (+3.0 to +3.0) points of mAP above the control."
    assert more.verdict == "not reproduced"
    assert claims(adaptive_attention=0.03, grid_td=0.01)[1].verdict == "reproduced"
    lowered, alone = claims(grid_td=-0.02)
    assert lowered.verdict == "not reproduced"
    assert alone.verdict == "not tested"
    assert {answer.verdict for answer in claims()} == {"not tested"}


def located(picture, *, attention, lrp, guided, against=(0.1, 0.4), opposes=True):
    def of(positive, negative):
        return {"positive": [positive] * 10, "negative": [negative] * 10, "opposes": opposes}

    word = {"area": 0.2, "attention": of(attention, 0.0), "lrp": of(lrp, against[0])}
    word["guided_grad_cam"] = of(guided, against[1])
    return {"run": "r", "model": "m", "picture": picture, "words": [word]}


def test_localisation_is_held_against_attention_word_by_word():
    def answers(**word):
        records = [
            located(str(n), **{name: 0.02 * (n % 9) + value for name, value in word.items()})
            for n in range(100)
        ]
        options = paper4_figure3.MethodOptions(methods=("attention", "lrp", "guided_grad_cam"))
        data = {**paper4_figure3.conclude(records, options).data, "pictures": {"r": 100}}
        return [claim.test(data) for claim in find_experiment("paper4-figure3").claims]

    above, signs = answers(attention=0.4, lrp=0.5, guided=0.45)
    assert (above.verdict, signs.verdict) == ("reproduced", "reproduced")
    assert "r, lrp: +10.0 (+10.0 to +10.0) points inside, against attention" in above.sentence
    assert "+30.0 (+30.0 to +30.0) points inside by Guided Grad-CAM" in signs.sentence
    assert answers(attention=0.4, lrp=0.5, guided=0.3)[0].verdict == "not reproduced"
    spoken_for = [located(str(n), attention=0.4, lrp=0.5, guided=0.5, opposes=False) for n in "ab"]
    assert paper4_figure3.leads_of(spoken_for)["r"][paper4_figure3.NEGATIVE]["count"] == 0


def test_words_of_a_few_pictures_decide_nothing():
    gains = [
        estimate([0.1, 0.2] * 10, list(range(pictures)) * (20 // pictures)) for pictures in (4, 20)
    ]
    assert [judge([gain], "").verdict for gain in gains] == ["not tested", "reproduced"]
    few = Estimate.from_json((-gains[0]).shifted(1).to_json())  # it stays known
    assert "4 of at least 20 pictures have" in judge([few], "").sentence
    older = {name: gains[0].to_json()[name] for name in ("mean", "low", "high", "count")}
    assert judge([Estimate.from_json(older)], "").verdict == "reproduced"


def test_results_that_are_older_than_a_claim_do_not_tell():
    for claim in find_experiment("paper4-figure3").claims:
        assert "lacks the difference of methods" in claim.test({"curves": {}}).sentence


def test_one_run_whose_goals_collapse_is_enough():
    share = {"mean": 0.05, "low": 0.0, "high": 0.2, "count": 200}
    other = share | {"mean": 0.04, "low": 0.02, "high": 0.06}
    data = {
        "runs": {
            name: {"collapsed": of, "collapse": of}
            for name, of in zip("ab", (share, other), strict=True)
        },
        "budgets": dict.fromkeys("ab", TREATED),
        "pictures": dict.fromkeys("ab", 200),
    }
    assert paper2_figure4.goals_collapse(data).verdict == "reproduced"


def test_a_handful_of_pictures_decides_nothing():
    shares = {"right": one(0.9), "wrong": one(0.1), "right - wrong": one(0.8)}
    data = {"positive": {"r": shares}}
    (claim,) = find_experiment("paper4-figure5").claims
    assert claim.test({**data, "pictures": {"r": 100}}).verdict == "reproduced"
    few = claim.test({**data, "pictures": {"r": 99}})
    assert few.verdict == "not tested"
    assert few.sentence.startswith("99 pictures are too few to decide. r: 10.0")
    for wrong, low, verdict in ((0.1, -0.1, "not tested"), (0.7, 0.1, "not reproduced")):
        gap = {**one(0.8), "low": low}
        other = {"r": {**shares, "wrong": one(wrong), "right - wrong": gap}}
        assert claim.test({"positive": other, "pictures": {}}).verdict == verdict


def one(mean):
    return {"mean": mean, "low": mean, "high": mean, "count": 5}


def test_the_most_important_previous_words_are_deleted(monkeypatch):
    seen = []
    real = captioner("adaptive_attention").read

    def read(picture, text, **options):
        seen.append(text.split())
        return real(picture, text, **options)

    subject = subjects("adaptive_attention")[0]
    monkeypatch.setattr(subject.captioner, "read", read)
    options = paper4_table2.Options(methods=("lrp",), deleted=2)
    (task, *_) = paper4_table2.tasks([subject], options)
    record = task.measure()
    assert record["words"]
    assert len(seen) == 2 * len(record["words"])  # by LRP and at random
    caption = subject.captioner.caption(world()[0][0].picture)
    texts = [word.text for word in caption.words]
    whys = subject.captioner.explain(world()[0][0].picture, caption)
    kept = {
        (place, tuple(np.delete(texts[:place], np.argsort(-why.words[1:], kind="stable")[:2])))
        for place, why in enumerate(whys)
        if place >= 5
    }
    assert {(place, words) for place, words in kept if [*words, texts[place]] in seen}


# --- tables 3 and 5 ------------------------------------------------------------------------------


def test_only_words_said_often_count_and_both_kinds_are_needed():
    words = [
        {"word": word, "right": right, "scores": {"L.": score}}
        for word, right, score in (("dog", True, 2.0), ("dog", False, 1.0), ("cat", True, 0.0))
    ]
    records = [
        {"run": "r", "model": "m", "picture": str(n), "words": [word]}
        for n, word in enumerate(words)
    ]
    options = paper4_table3.Options(said_more_than=1)
    findings = paper4_table3.conclude(records, options)
    assert findings.data["rows"]["r"]["L."]["mean"] == 1  # with the cat it would be a half
    assert findings.data["words"]["r"] == {"right": 1, "wrong": 1}
    with pytest.raises(DataError, match="said more than 2 times, 0 are right and 0 wrong"):
        paper4_table3.conclude(records, paper4_table3.Options(said_more_than=2))


def test_average_precision_of_resampled_pictures_is_that_of_the_pictures_drawn():
    random = np.random.default_rng(0)
    words = [
        {
            "word": "dog" if n % 3 else "cat",
            "number": n,
            "log_probability": -float(random.random()),
            "right": bool(random.random() < 0.6),
        }
        for n in range(12)
    ]
    for ranked in (True, False):
        score = paper4_table5.mean_precision(words, 12, ranked)
        weights = np.array([2, 0, 1, 1, 0, 3, 1, 1, 0, 1, 1, 1], float)
        drawn = [word for word in words for _ in range(int(weights[word["number"]]))]
        expected = []
        for name in ("cat", "dog"):
            some = sorted(
                (w for w in drawn if w["word"] == name), key=lambda w: -w["log_probability"]
            )
            if not ranked:
                expected.append(np.mean([w["right"] for w in some]))
                continue
            total = hits = seen = 0.0
            for number in dict.fromkeys(w["number"] for w in some):  # equal ones come at once
                same = [w for w in some if w["number"] == number]
                seen += len(same)
                hits += sum(w["right"] for w in same)
                total += sum(w["right"] for w in same) * hits / seen
            expected.append(total / hits)
        assert score.resampled(weights) == pytest.approx(np.mean(expected))


def test_a_word_that_is_never_right_counts_as_nothing_right():
    words = [
        {"word": word, "number": n, "log_probability": -1.0, "right": word == "dog"}
        for n, word in enumerate(("dog", "cat"))
    ]
    assert paper4_table5.mean_precision(words, 2, True).corpus == 0.5
    only_dogs = paper4_table5.mean_precision(words, 2, True).resampled(np.array([2.0, 0.0]))
    assert only_dogs == 1  # the cat was not drawn, so nothing is known of it


def test_wrong_words_are_counted_over_the_corpus():
    score = wrong_words(["a red dog", "a blue cat sleeps"], [["a dog"], ["a cat sleeps"]])
    assert score.corpus == pytest.approx(2 / 5)
    assert score.per_image.tolist() == pytest.approx([1 / 2, 1 / 3])


# --- paper 2 -------------------------------------------------------------------------------------


def changes(pairs):
    return [{"goal_change": goal, "attention_change": attention} for goal, attention in pairs]


def test_changes_that_go_together_pass_the_bound_and_others_do_not():
    random = np.random.default_rng(3)
    series = [random.random(8).tolist() for _ in range(10)]
    together = changes([(one, [2 * x + 1 for x in one]) for one in series])
    observed, bound = paper2_figure4.correlation(together, 200)
    assert observed == pytest.approx(1)
    assert 0 < bound < 0.5
    apart = changes([(one, random.random(8).tolist()) for one in series])
    observed, bound = paper2_figure4.correlation(apart, 200)
    assert observed < bound
    # A caption that moves more as a whole is no correlation between its words.
    levels = changes([([n, n, n], [n, n, n]) for n in range(5)])
    assert paper2_figure4.correlation(levels, 20)[0] == pytest.approx(0)


TREATED = "6 epochs of adversarial_pretraining, then 2 epochs of adversarial"


def followed(goals, **budgets):
    """Answers of runs that all have these goals in each of their captions."""
    rng = np.random.default_rng(0)
    records = [
        {
            "run": run,
            "picture": str(n),
            "goals": goals(rng).tolist(),
            "goal_change": [1.0, 2.0, 3.0],
            "attention_change": [1.0, 2.0, 3.0] if run == "treated" else [3.0, 2.0, 1.0],
        }
        for run in budgets
        for n in range(20)
    ]
    data = paper2_figure4.conclude(records, paper2_figure4.Options(permutations=200)).data
    data |= {"budgets": budgets, "pictures": dict.fromkeys(budgets, 100)}
    return data, [claim.test(data) for claim in paper2_figure4.CLAIMS]


def test_goals_are_judged_as_the_paper_trains_them():
    control = TREATED + "_pretraining"
    data, (_, together, _) = followed(lambda rng: rng.random((9, 4)), treated=TREATED, c=control)
    assert together.verdict == "reproduced"
    assert "c: " not in together.sentence
    data["runs"]["treated"]["correlation"] = 0.0
    assert paper2_figure4.changes_go_together(data).verdict == "not tested"
    data["runs"]["treated"]["correlation"] = -1.0
    assert paper2_figure4.changes_go_together(data).verdict == "not reproduced"
    _, answers = followed(lambda rng: rng.random((9, 4)), c=control)
    assert {answer.sentence for answer in answers} == {paper2_figure4.NOT_TREATED}


PEAKS = itertools.cycle(range(9))


@pytest.mark.parametrize(
    ("goals", "verdict"),
    [
        (lambda rng: rng.random((9, 1)).cumsum(0), "reproduced"),  # only rises
        (lambda rng: rng.random((9, 4)), "not tested"),  # no pattern
        (lambda rng: np.arange(9.0)[:, None] % 2 + rng.random((9, 4)) / 9, "not reproduced"),
        (lambda rng: np.repeat(rng.random(4), 2)[:, None].round(1), "reproduced"),  # said twice
        # Ties are no segments: few points turn, and as few where words are permuted.
        (lambda rng: np.eye(9)[:, [next(PEAKS)]], "not tested"),
    ],
)
def test_segments_are_held_against_permuted_words(goals, verdict):
    data, (segments, *_) = followed(goals, treated=TREATED)
    assert segments.verdict == verdict, segments
    del data["runs"]["treated"]["permuted_turns"]
    assert "lacks how often the goals" in paper2_figure4.segments_are_monotone(data).sentence


def test_some_goals_collapse_where_most_do_not():
    def some(share):
        def goals(rng):
            alike = np.ones((5, 4)) + 0.01 * rng.random((5, 4))
            return alike if rng.random() < share else rng.normal(size=(5, 4))

        data, (*_, collapse) = followed(goals, treated=TREATED, other=TREATED)
        return data["runs"]["treated"]["collapse"]["mean"], collapse

    mean, collapse = some(0.4)
    assert mean < 0.9
    assert collapse.verdict == "reproduced"
    assert some(0.0)[1].verdict == "not reproduced"


def test_collapse_is_the_mean_cosine_of_goals():
    goals = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    assert paper2_figure4.collapse(goals) == pytest.approx(1 / 3)
    assert paper2_figure4.collapse(goals[:1]) is None


def test_a_captioner_without_goals_is_refused():
    (task, *_) = paper2_figure4.tasks(subjects("soft_attention"), paper2_figure4.Options())
    with pytest.raises(ConfigError, match="sets no goals; give a run of the model hierarchical"):
        task.measure()


# --- arms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["paper1-hard-soft", "paper2-adversarial", "paper4-table4"])
def test_arms_are_recipes_that_can_be_trained_and_differ_in_one_thing(name, tmp_path):
    experiment = find_experiment(name)
    options = experiment.options()
    recipes = {}
    for arm in experiment.arms(options):
        recipe = recipe_of(arm, 0, options, tmp_path)
        recipes[arm.name] = recipe
        if arm.after is None:
            check(recipe)
    if name == "paper4-table4":
        control, treated = recipes["control"], recipes["lrp-inference"]
        assert control.start_from == treated.start_from == str(tmp_path / "runs" / "before-0")
        assert control.objective["likelihood"] == 1
        assert treated.objective["likelihood"] == 0.5
        assert treated.steps == control.steps == 320
        assert treated.optimizer.learning_rate == 1e-6
        assert (treated.batch.by, treated.batch.size) == ("length", 32)
    if name == "paper2-adversarial":
        before, control, treated = recipes.values()
        assert before.then == control.then == treated.then == ()
        assert control.start_from == treated.start_from == str(tmp_path / "runs" / "before-0")
        assert replace(control, objective=treated.objective) == treated
    if name == "paper1-hard-soft":
        soft, hard = recipes["soft"], recipes["hard"]
        assert soft.objective["label_smoothing"] == hard.objective["label_smoothing"] == 0.1
        assert (soft.encoder, soft.optimizer, soft.epochs) == (
            hard.encoder,
            hard.optimizer,
            hard.epochs,
        )


@pytest.mark.parametrize(
    "recipe",
    ["scenes/hierarchical_adversarial", "flickr8k/hierarchical", "flickr8k/hierarchical_paper"],
)
def test_the_game_and_its_control_are_the_last_phase_of_any_recipe(recipe, tmp_path):
    """And last as long as it says, however dev does."""
    options = paper2_adversarial.Options(recipe=recipe)
    before, control, treated = (
        recipe_of(arm, 1, options, tmp_path) for arm in paper2_adversarial.arms(options)
    )
    *_, game = load_recipe(recipe, ["seed=1"]).phases()
    assert before == replace(load_recipe(recipe, ["seed=1"]), then=())
    assert treated.start_from == control.start_from == str(tmp_path / "runs" / "before-1")
    assert replace(treated, start_from=None, dev=game.dev) == game
    assert (treated.dev.patience, treated.dev.tolerance) == (0, None)
    assert replace(control, objective=treated.objective) == treated
    assert control.objective == {**before.objective, "name": "adversarial_pretraining"}
    for each in (before, control, treated):
        check(replace(each, start_from=None))


@pytest.mark.parametrize("recipe", ["scenes/hierarchical", "scenes/soft_attention"])
def test_a_recipe_without_a_game_is_refused(recipe):
    with pytest.raises(ConfigError, match=r"the last phase of scenes/\w+ is not `adversarial`"):
        paper2_adversarial.arms(paper2_adversarial.Options(recipe=recipe))


def test_scores_of_the_same_words_are_compared_word_by_word():
    """Alone each AUC is uncertain; that one is above the other is not."""
    draw = np.random.default_rng(0)
    records = []
    for n in range(200):
        right = bool(n % 2)
        clear, noise = right * 0.8 + draw.normal(), 0.3 * draw.normal()
        scores = {"L.": clear, "attention max": clear + noise - 0.3 * right}
        word = {"word": "dog", "right": right, "scores": scores}
        records.append({"run": "r", "model": "m", "picture": str(n), "words": [word]})
    data = paper4_table3.conclude(records, paper4_table3.Options()).data
    row = {name: Estimate.from_json(value) for name, value in data["rows"]["r"].items()}
    assert row["L."].low < row["attention max"].high
    lead = Estimate.from_json(data["leads"]["r"]["L. - attention max"])
    assert lead.mean == pytest.approx(row["L."].mean - row["attention max"].mean)
    first, *_, last = find_experiment("paper4-table3").claims
    assert first.test({**data, "pictures": {"r": 200}}).verdict == "reproduced"
    gated = [
        {**r, "words": [{**w, "scores": {"1 - beta": w["scores"]["L."], **w["scores"]}}]}
        for r in records
        for w in r["words"]
    ]
    data = paper4_table3.conclude(gated, paper4_table3.Options()).data
    assert last.test(data).verdict == "reproduced"
    del data["leads"]["r"]["1 - beta - attention max"]
    assert "lacks the difference of 1 - beta and attention max" in last.test(data).sentence


def test_one_picture_has_no_interval():
    assert not estimate([1.0, 1.0], ["a", "a"]).bounded
    assert estimate([1.0, 1.0], ["a", "b"]).bounded
    assert not estimate_difference([1.0], ["a"], [0.0], ["a"]).bounded
    assert not estimate_gap([1.0], [0.0, 0.1]).bounded
    # What two groups of words owe to their picture does not count as doubt.
    values, pictures = [0.0, 5.0, 9.0], ["a", "b", "c"]
    more = estimate_difference([value + 1 for value in values], pictures, values, pictures)
    assert [more.low, more.mean, more.high] == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("rate", [2.5e-6, 5e-7])
def test_arms_are_tuned_at_the_very_rate_that_is_asked_for(rate, tmp_path):
    options = paper4_table4.Options(learning_rate=rate)
    *_, treated = paper4_table4.arms(options)
    assert recipe_of(treated, 0, options, tmp_path).optimizer.learning_rate == rate


def test_a_gain_counts_if_seeds_agree_and_two_seeds_say_nothing():
    def record(arm, seed, value):
        scores = {"BLEU-4": value, "CHAIRi": None}
        return {"arm": arm, "seed": seed, "dev": scores, "test": scores, "terms": {"collapse": 0.5}}

    records = [record("new", s, 0.3 + 0.001 * s) for s in range(3)]
    records += [record("old", s, 0.2) for s in range(3)]
    findings = compare_arms(records, [("new", "old")], ["collapse"])
    assert gains_in(findings.data, "new - old", "BLEU-4").verdict == "reproduced"
    assert "| new | 30.1 (" in findings.table
    assert "| 0.500 |" in findings.table
    assert "CHAIRi" not in findings.table  # not defined for these captions
    level = gains_in({"gains": {"a - b": {"BLEU-4": one(0.0)}}}, "a - b", "BLEU-4", claimed=0.02)
    assert level.verdict == "not reproduced"
    wide = {"mean": 0.1, "low": -0.1, "high": 0.3, "count": 5}
    unsure = gains_in({"gains": {"a - b": {"BLEU-4": wide}}}, "a - b", "BLEU-4", claimed=0.02)
    assert unsure.verdict == "not tested"
    assert unsure.sentence.startswith(
        "Seeds differ too much to tell. a - b: +10.0 (-10.0 to +30.0)"
    )
    two = compare_arms([r for r in records if r["seed"] < 2], [("new", "old")])
    answer = gains_in(two.data, "new - old", "BLEU-4")
    assert answer.verdict == "not tested"
    assert answer.sentence.startswith("2 of at least 3 runs of each were compared. new - old: +1")
