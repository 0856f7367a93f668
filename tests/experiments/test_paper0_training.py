"""Papers 0 and 3, what is trained: what follows from scores, and that the arms can be trained."""

from pathlib import Path

import pytest

from sightline.errors import ConfigError
from sightline.experiments import paper0_figure4, paper0_table3, paper3_table1, paper3_time
from sightline.experiments.training_tasks import recipe_of
from sightline.recipe import load_recipe
from sightline.training.recipe_check import check


def record(arm, seed, score, mask=0.8, dev=None):
    test, dev = (
        {"CIDEr-D": each, "BLEU-4": each / 5} for each in (score, score if dev is None else dev)
    )
    return {"arm": arm, "seed": seed, "dev": dev, "test": test, "terms": {"mask": mask}}


def sweep(*scores, middle=0.01, mask=0.8):
    options = paper0_figure4.Options(seeds=3, penalties=(0.1, middle, 0.001))
    arms = [arm.name for arm in paper0_figure4.arms(options)]
    assert arms == ["lambda-0.1", f"lambda-{middle}", "lambda-0.001"]
    records = [
        record(arm, seed, score + 0.1 * seed, mask)
        for arm, score in zip(arms, scores, strict=True)
        for seed in range(3)
    ]
    return paper0_figure4.conclude(records, options)


def test_the_best_penalty_must_beat_both_ends():
    findings = sweep(1.0, 2.0, 1.5)
    assert findings.data["peak"]["arm"] == "lambda-0.01"
    assert paper0_figure4.rises_and_falls(findings.data).verdict == "reproduced"
    assert "| 0.01 | 0.80 (0.80 to 0.80) | 210.0 (" in findings.table
    at_the_end = paper0_figure4.rises_and_falls(sweep(1.0, 2.0, 2.5).data)
    assert at_the_end.verdict == "not reproduced"
    assert "+100.0 (+100.0 to +100.0) against λ = 0.1, -50.0 (" in at_the_end.sentence
    off = paper0_figure4.rises_and_falls(sweep(1.0, 2.0, 1.5, mask=0.98).data)
    assert off.verdict == "not tested"
    assert off.sentence.startswith("Masks of λ = 0.01 average 0.98, outside of 0.6 to 0.9")
    old = {name: value for name, value in findings.data.items() if name == "rows"}
    assert "lacks the best λ between the ends" in paper0_figure4.rises_and_falls(old).sentence


def test_the_papers_penalty_must_beat_every_other():
    best = paper0_figure4.papers_is_best
    assert best(sweep(1.0, 2.0, 1.5, middle=0.035).data).verdict == "reproduced"
    assert best(sweep(1.0, 2.0, 2.5, middle=0.035).data).verdict == "not reproduced"
    assert best(sweep(1.0, 2.0, 1.5, middle=0.035, mask=0.5).data).verdict == "not tested"
    without = best(sweep(1.0, 2.0, 1.5).data)
    assert (without.verdict, without.sentence) == (
        "not tested",
        "λ = 0.035 was not among those tried.",
    )


def test_what_is_chosen_on_dev_is_judged_on_test():
    """Among penalties that are all alike, the luckiest on dev is above the others there."""
    options = paper0_figure4.Options(seeds=3, penalties=(0.1, 0.01, 0.001))
    records = [
        record(arm.name, seed, 1 + 0.1 * seed, dev=luck + 0.01 * seed)
        for arm, luck in zip(paper0_figure4.arms(options), (1, 2, 1), strict=True)
        for seed in range(3)
    ]
    answer = paper0_figure4.rises_and_falls(paper0_figure4.conclude(records, options).data)
    assert answer.verdict == "not reproduced"
    assert "CIDEr-D on test at λ = 0.01, paired by seed: +0.0" in answer.sentence
    dev = {"spatial": 3.0, "without-d_len": 1.0, "soft-attention": 2.0}
    alike = [record(arm, s, 1 + 0.1 * s, dev=dev[arm]) for arm in dev for s in range(3)]
    data = paper3_table1.conclude(alike, paper3_table1.Options()).data
    assert data["spatial_above"]["without-d_len"]["mean"] == 0


def test_two_seeds_tell_nothing():
    options = paper0_figure4.Options(seeds=2, penalties=(0.1, 0.01, 0.001))
    records = [
        record(arm.name, seed, number + seed)
        for number, arm in enumerate(paper0_figure4.arms(options))
        for seed in range(2)
    ]
    answer = paper0_figure4.rises_and_falls(paper0_figure4.conclude(records, options).data)
    assert answer.verdict == "not tested"
    assert "2 seeds are too few" in answer.sentence


def test_spatial_attention_is_held_against_soft_attention_and_a_plain_tau():
    scores = {"spatial": 2.0, "without-d_len": 1.5, "soft-attention": 1.9}
    records = [
        record(arm, seed, score + 0.1 * seed) for arm, score in scores.items() for seed in range(3)
    ]
    data = paper3_table1.conclude(records, paper3_table1.Options()).data
    claims = paper3_table1.EXPERIMENT.claims
    assert [claim.test(data).verdict for claim in claims] == ["reproduced", "not reproduced"]
    few = paper3_table1.conclude([r for r in records if r["seed"] < 2], paper3_table1.Options())
    assert {claim.test(few.data).verdict for claim in claims} == {"not tested"}
    options = paper3_table1.Options()
    plain = recipe_of(paper3_table1.arms(options)[1], 0, options, Path())
    assert plain.model["scale_by_length"] is False


def raced(arm, seed, scores, seconds):
    curve = [{"step": 10 * n, "CIDEr-D": score} for n, score in enumerate(scores, 1)]
    return {"arm": arm, "seed": seed, "curve": curve, "step_seconds": seconds}


def test_time_is_to_the_score_that_both_reach():
    records = [raced("spatial", seed, [0.5, 0.9, 1.2], 0.1 + 0.01 * seed) for seed in range(3)]
    records += [raced("soft-attention", seed, [0.3, 0.7, 0.8], 0.4) for seed in range(3)]
    data = paper3_time.conclude(records, paper3_time.Options()).data
    assert data["runs"][0]["target"] == 0.8
    assert data["runs"][0]["spatial"]["steps"] == 20  # 0.9 is the first above it
    assert data["runs"][0]["soft-attention"]["seconds"] == pytest.approx(12)
    assert data["ratio"]["mean"] == pytest.approx(20 * 0.11 / 12)
    assert paper3_time.is_faster(data).verdict == "reproduced"
    slow = [{**r, "step_seconds": 9.0} if r["arm"] == "spatial" else r for r in records]
    answer = paper3_time.is_faster(paper3_time.conclude(slow, paper3_time.Options()).data)
    assert answer.verdict == "not reproduced"
    few = [r for r in records if r["seed"] < 2]
    answer = paper3_time.is_faster(paper3_time.conclude(few, paper3_time.Options()).data)
    assert answer.verdict == "not tested"
    with pytest.raises(ConfigError, match="dev evaluations have no score called 'CIDER'"):
        paper3_time.conclude(records, paper3_time.Options(metric="CIDER"))


def fusions(mask=0.8, **gains):
    records = [
        record(arm, seed, 1 + 0.1 * seed + 0.01 * (seed % 2) + gains.get(arm, 0.0), mask)
        for arm in ("plain", *paper0_table3.FUSIONS)
        for seed in range(4)
    ]
    for each in records:
        if each["arm"] == "plain":
            each["terms"] = {"nll": 1.0}
        elif each["arm"] == "max":
            each["dev"] = {**each["dev"], "CIDEr-D": 1.0}  # noise instead of a gain
    return paper0_table3.conclude(records, paper0_table3.Options())


def test_fusions_are_paired_with_plain_by_seed():
    data = fusions(gate=0.5, decay=0.05, average=-0.05).data
    verdict = {
        fusion: paper0_table3.beats_plain(fusion)(data).verdict for fusion in paper0_table3.FUSIONS
    }
    assert verdict["gate"] == verdict["decay"] == "reproduced"  # alike in every seed
    assert verdict["average"] == "not reproduced"
    assert verdict["max"] == "not tested"  # noise that the paper's gain could hide in
    assert "+5.0 (+5.0 to +5.0)" in paper0_table3.beats_plain("decay")(data).sentence
    assert paper0_table3.gate_is_best(data).verdict == "reproduced"
    assert paper0_table3.gate_is_best(fusions(decay=0.05).data).verdict == "not reproduced"
    least = paper0_table3.average_is_least
    assert least(data).verdict == "not tested"  # the noise of max may be above it or below
    assert least(fusions(average=0.5).data).verdict == "not reproduced"
    clear = least(fusions(average=-9.0, gate=0.1).data)
    assert clear.verdict == "reproduced"
    assert "above that of the average on dev, paired by seed: +910.0 (" in clear.sentence
    del data["average_below"]
    assert "lacks what the others are above the average" in least(data).sentence


def test_masks_that_tell_nothing_apart_test_nothing():
    answer = paper0_table3.beats_plain("gate")(fusions(mask=0.99, gate=1.0).data)
    assert answer.verdict == "not tested"
    assert "Masks of gate average 0.99" in answer.sentence
    assert paper0_table3.gate_is_best(fusions(mask=0.99).data).verdict == "not tested"


@pytest.mark.parametrize("experiment", [paper0_figure4, paper0_table3, paper3_table1, paper3_time])
def test_arms_can_be_trained(experiment, tmp_path):
    options = experiment.Options(seeds=1)
    for arm in experiment.arms(options):
        check(recipe_of(arm, 0, options, tmp_path))


def test_a_sweep_needs_several():
    with pytest.raises(ConfigError, match="a sweep needs at least 3"):
        paper0_figure4.Options(penalties=(0.1, 0.1, 0.2))


PAIRS = [
    ("scenes/fusion", "scenes/fusion_plain"),
    ("flickr8k/fusion", "flickr8k/fusion_plain"),
    ("flickr8k/aligned_transformer", "flickr8k/transformer_self_critical"),
    ("flickr30k/aligned_transformer", "flickr30k/transformer_self_critical"),
    ("coco/aligned_transformer", "coco/transformer"),
    ("coco_20000/aligned_transformer", "coco_20000/transformer"),
]


@pytest.mark.parametrize(("aligned", "plain"), PAIRS)
def test_an_aligned_captioner_and_its_control_differ_in_alignment_alone(aligned, plain):
    one, other = load_recipe(aligned), load_recipe(plain)
    assert {**one.model, "name": "transformer", "alignment": None} == {
        **other.model,
        "alignment": None,
    }
    for name in ("data", "encoder", "optimizer", "schedule", "batch", "dev", "epochs", "then"):
        assert getattr(one, name) == getattr(other, name), name
