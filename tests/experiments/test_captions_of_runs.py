"""Paper 0's figures 1 and 7 and tables 1 and 2, and fine-tuning: on tiny runs, and by hand."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import sightline
from sightline.cli.experiment import command
from sightline.data.scenes import make_scene_dataset, write_scenes
from sightline.errors import ConfigError, DataError
from sightline.experiments import (
    avoid_unsupported,
    fine_tuning,
    paper0_figure1,
    paper0_figure7,
    paper0_table1,
    paper0_table2,
)
from sightline.experiments.estimate import Estimate
from sightline.experiments.masks import trained_mask
from sightline.experiments.scored import average, difference
from sightline.metrics.bleu import bleu
from sightline.metrics.word_labels import wrong_words


def invoke(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def run(folder, *arguments):
    result = invoke(*arguments, "-o", folder)
    assert result.exit_code == 0, result.exception or result.output
    assert (folder / "figure.svg").stat().st_size > 1000
    return json.loads((folder / "data.json").read_text()), result.stdout


def said(run, picture, caption, references, model="transformer", **more):
    record = {"run": run, "model": model, "picture": picture, "caption": caption, "image": None}
    return {**record, "references": references, **more}


# --- figure 1 ------------------------------------------------------------------------------------


def test_the_top_region_before_and_after_alignment(aligned, plain, tmp_path):
    data, table = run(tmp_path / "1", "paper0-figure1", aligned, "--set", "layer=1")
    (row,) = data["rows"]
    assert 0 <= row["moved"]["mean"] <= 1
    assert row["moved"]["count"] >= row["before"]["count"]
    assert "figure 1: “After alignment" in table
    assert "not tested" in table  # four pictures
    for arguments, expected in (
        ((plain,), "has no alignment; give runs of aligned captioners"),
        ((aligned, "--set", "layer=3"), "layer: must be from 1 to 2, the decoder's layers"),
    ):
        error = invoke("paper0-figure1", *arguments, "-o", tmp_path / expected[:3]).exception
        assert isinstance(error, ConfigError)
        assert expected in str(error)


def top(picture, before, after):
    box = {True: [0.0, 0.0, 0.5, 0.5], False: [0.5, 0.5, 1.0, 1.0]}
    hits = {"before": before, "after": after}
    word = {"word": "dog", "before": box[before], "after": box[after], "hits": hits}
    return {"run": "r", "picture": picture, "words": [word], "image": None, "mask": 0.75}


def test_more_top_regions_on_the_object_are_better_grounded():
    records = [top(str(n), n % 4 == 0, True) for n in range(40)]
    data = paper0_figure1.conclude(records, paper0_figure1.Options()).data
    (row,) = data["rows"]
    assert (row["moved"]["mean"], row["before"]["mean"], row["after"]["mean"]) == (0.75, 0.25, 1)
    assert row["gain"]["mean"] == 0.75
    assert paper0_figure1.grounds_better(data).verdict == "reproduced"
    off = {**data, "masks": {"r": 0.99}}
    assert paper0_figure1.grounds_better(off).verdict == "not tested"
    same = [top(picture, True, True) for picture in map(str, range(20))]
    level = paper0_figure1.conclude(same, paper0_figure1.Options()).data
    assert paper0_figure1.grounds_better(level).verdict == "not reproduced"
    alone = paper0_figure1.conclude([top("p", False, True)], paper0_figure1.Options()).data
    assert paper0_figure1.grounds_better(alone).verdict == "not tested"  # one picture with a box
    for record in records:
        del record["words"][0]["hits"]
    nothing = paper0_figure1.conclude(records, paper0_figure1.Options()).data
    assert paper0_figure1.grounds_better(nothing).verdict == "not tested"


# --- figure 7 ------------------------------------------------------------------------------------


def test_cases_are_the_first_pictures_whose_captions_differ(aligned, plain, tmp_path):
    _, table = run(tmp_path, "paper0-figure7", aligned, plain, "--set", "shown=2")
    assert "| transformer-0 | transformer | 4 | " in table
    records = [
        said(name, picture, caption, ["a dog"], image="" if picture != "late" else None)
        for picture, captions in (
            ("same", ["a dog", "a dog"]),
            ("differ", ["a dog", "a cat"]),
            ("late", ["a dog", "a cow"]),
        )
        for name, caption in zip("ab", captions, strict=True)
    ]
    (case,) = paper0_figure7.cases_of(records)
    assert [record["caption"] for record in case] == ["a dog", "a cat"]


def test_accurate_and_rich_are_both_needed():
    def verdict(aligned, plain):
        records = [
            said(f"{name}-{seed}", str(n), caption, ["a red dog"], model)
            for n in range(20)
            for name, model, caption in (
                ("new", "aligned_transformer", aligned),
                ("old", "transformer", plain),
            )
            for seed in range(3)
        ]
        data = paper0_figure7.conclude(records, paper0_figure7.Options()).data
        alone = {**data, "rows": {run: data["rows"][run] for run in ("new-0", "old-0", "old-1")}}
        answer = paper0_figure7.is_more_accurate_and_richer(alone)
        assert answer.sentence.startswith("1 of at least 3 runs of each were compared. With align")
        return paper0_figure7.is_more_accurate_and_richer(data).verdict

    assert verdict("a red dog", "a cat") == "reproduced"
    assert verdict("a dog", "a cat") == "not reproduced"  # right, but no richer
    assert verdict("a red red dog", "a dog") == "not reproduced"  # richer, but no more right


# --- tables 1 and 2 ------------------------------------------------------------------------------


def test_rows_and_what_alignment_gains(aligned, plain, tmp_path):
    metrics = ("--set", "metrics=[bleu, cider-d]")
    data, table = run(tmp_path, "paper0-table1", aligned, plain, *metrics)
    assert "| run | model | BLEU-1 | BLEU-2 | BLEU-3 | BLEU-4 | CIDEr-D |" in table
    assert paper0_table1.Options().metrics[-1] == "spice-spacy"  # ours, which its name says
    alone = paper0_table1.aligned_is_best(data)
    assert alone.verdict == "not tested"  # another seed may say otherwise
    gap = data["rows"]["aligned_transformer-0"]["BLEU-4"]["mean"]
    gap -= data["rows"]["transformer-0"]["BLEU-4"]["mean"]
    assert f"aligned_transformer - transformer: {100 * gap:+.1f} points of BLEU-4" in alone.sentence


def scored(aligned, plain, pictures=(9, 9)):
    """Data of runs that have each of these values in all scores."""
    names, rows, models = ("BLEU-4", "METEOR", "CIDEr-D"), {}, {}
    for model, values, count in zip(
        ("aligned_transformer", "transformer"), (aligned, plain), pictures, strict=True
    ):
        for seed, value in enumerate(values):
            score = Estimate(value, value - 1, value + 1, count).to_json()
            rows[f"{model} - {seed}"] = dict.fromkeys(names, score)
            models[f"{model} - {seed}"] = model
    return {"rows": rows, "models": models}


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (scored([3.0, 3.1, 3.2], [1.0, 1.1, 1.2]), "reproduced"),
        (scored([1.0, 1.1, 1.2], [3.0, 3.1, 3.2]), "not reproduced"),
        (scored([1.0, 2.0, 3.0], [0.9, 1.9, 2.9]), "not tested"),  # within what seeds differ by
        (scored([3.0, 3.1], [1.0, 1.1, 1.2]), "not tested"),
        (scored([3.0, 3.1, 3.2], [1.0, 1.1, 1.2], (9, 8)), "not tested"),  # other pictures
        (scored([3.0, 3.1, 3.2], []), "not tested"),
    ],
)
def test_captioners_are_compared_over_their_runs(data, verdict):
    assert paper0_table1.aligned_is_best(data).verdict == verdict


@pytest.mark.parametrize(("mask", "verdict"), [(0.75, "reproduced"), (0.99, "not tested")])
def test_alignment_is_judged_where_masks_were_at_work(mask, verdict):
    data = {**scored([3.0, 3.1, 3.2], [1.0, 1.1, 1.2]), "pictures": {"r": 100}}
    (table,), (cases,) = paper0_table1.EXPERIMENT.claims, paper0_figure7.EXPERIMENT.claims
    unknown = table.test(data)
    assert unknown.verdict == "not tested"
    assert unknown.sentence.startswith("The mean mask of aligned_transformer - 0 is not known")
    masks = {f"aligned_transformer - {seed}": mask for seed in range(3)}
    assert table.test({**data, "masks": masks}).verdict == verdict
    fewer = {run: {"wrong words": scores["METEOR"]} for run, scores in data["rows"].items()}
    for run, scores in fewer.items():
        negative = {**scores["wrong words"], "mean": -scores["wrong words"]["mean"]}
        fewer[run] = {"wrong words": negative, "content words": scores["wrong words"]}
    assert cases.test({**data, "rows": fewer, "masks": masks}).verdict == verdict


def test_the_mean_mask_of_a_run_is_that_of_its_training(make_run, tmp_path):
    folder = make_run("aligned_transformer", 7)
    lines = [{"step": 1, "mask": 0.9, "nll": 3.0}, {"step": 2, "mask": 0.7}, {"step": 2, "dev": {}}]
    history = folder / "history.jsonl"
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    metrics = ("--set", "metrics=[bleu]")
    data, _ = run(tmp_path / "last", "paper0-table1", folder, *metrics)
    assert data["masks"] == {"aligned_transformer-7": 0.7}
    data, _ = run(tmp_path / "cases", "paper0-figure7", folder)
    assert data["masks"] == {"aligned_transformer-7": 0.7}
    data, _ = run(tmp_path / "seen", "paper0-figure6", folder)  # of the pictures
    assert data["masks"] != {"aligned_transformer-7": 0.7}
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "training": {"step": 1}}))
    assert trained_mask(folder, folder) == 0.9  # a checkpoint of an earlier phase
    history.unlink()
    assert trained_mask(folder, folder) is None


def test_an_ensemble_and_its_file_for_a_test_server(make_run, tmp_path):
    runs = [make_run("aligned_transformer"), make_run("aligned_transformer", 1)]
    data, table = run(tmp_path, "paper0-table2", *runs, "--set", "metrics=[bleu, cider-d]")
    assert list(data["rows"]) == ["aligned_transformer-0", "aligned_transformer-1", "ensemble"]
    assert "| ensemble | ensemble of 2 | " in table
    results = json.loads((tmp_path / "captions.json").read_text())
    assert [result.keys() for result in results] == [{"image_id", "caption"}] * 4
    again = (tmp_path / "captions.json").read_bytes()
    run(tmp_path, "paper0-table2", *runs, "--set", "metrics=[bleu, cider-d]")
    assert (tmp_path / "captions.json").read_bytes() == again
    error = invoke("paper0-table2", runs[0], "-o", tmp_path / "one").exception
    assert "an ensemble has several runs" in str(error)


def test_captions_for_a_test_server(make_run, tmp_path):
    numbers = (391895, 7)
    pictures = tmp_path / "test2014"
    pictures.mkdir()
    for number in numbers:
        Image.new("RGB", (64, 64), (number % 256, 90, 30)).save(pictures / f"{number}.png")
    listing = tmp_path / "annotations" / "image_info_test2014.json"
    listing.parent.mkdir()
    images = [{"id": number, "file_name": f"{number}.png"} for number in numbers]
    listing.write_text(json.dumps({"images": images}))
    runs = [make_run("aligned_transformer"), make_run("aligned_transformer", 1)]
    data, _ = run(tmp_path / "out", "paper0-table2", *runs, "--data", listing)
    assert data["data"] == "image_info_test2014"
    results = json.loads((tmp_path / "out" / "captions.json").read_text())
    assert [result["image_id"] for result in results] == list(numbers)
    assert all(isinstance(result["caption"], str) for result in results)


def test_pictures_without_references_are_captioned_and_not_scored():
    records = [
        said(name, str(n), f"a dog {n}", [], f"model {name}", image_id=n)
        for name in ("a", "b", paper0_table2.ENSEMBLE)
        for n in range(2)
    ]
    findings = paper0_table2.conclude(records, paper0_table2.Options(metrics=("bleu",)))
    expected = [{"image_id": n, "caption": f"a dog {n}"} for n in range(2)]
    assert findings.files == {"captions.json": expected}
    assert "| ensemble | model ensemble | 2 |" in findings.table
    answer = paper0_table2.needs_the_server(findings.data)
    assert answer.sentence.startswith("Captions were not sent")
    with pytest.raises(DataError, match="0: has no captions to score against"):
        paper0_table1.conclude(records, paper0_table1.Options(metrics=("bleu",)))


# --- fine-tuning ---------------------------------------------------------------------------------


def test_phases_are_compared_with_those_before_them():
    def verdict(before, after):
        records = [
            said(name, str(n), caption, ["a dog on a sofa"])
            for name, caption in (("r:1", before), ("r:2", after))
            for n in range(20)
        ]
        findings = fine_tuning.conclude(records, fine_tuning.Options(metrics=("chair", "cider-d")))
        assert "| r:1 to r:2 | " in findings.table
        return fine_tuning.does_not_hallucinate_more(findings.data)

    worse = verdict("a dog", "a dog and a cat")
    assert worse.verdict == "not reproduced"
    assert "r:1 to r:2: CHAIRi +50.0" in worse.sentence
    assert verdict("a dog and a cat", "a dog").verdict == "reproduced"
    shapes = verdict("a red circle", "a red star")  # nothing that COCO has a name for
    assert "CHAIR" not in shapes.sentence
    assert "wrong words +0.0" in shapes.sentence
    change = {"mean": 0.0, "low": -0.05, "high": 0.05, "count": 9}
    unsure = fine_tuning.does_not_hallucinate_more({"changes": {"r": {"CHAIRi": change}}})
    assert unsure.verdict == "not tested"


def test_fine_tuning_needs_a_before_and_an_after(plain, tmp_path):
    error = invoke("fine-tuning", plain, "-o", tmp_path).exception
    assert isinstance(error, ConfigError)
    assert "give a run before and after a phase, such as RUN:1 RUN:2" in str(error)


# --- avoid-unsupported ----------------------------------------------------------------------------


def test_the_best_supported_caption_of_a_beam_is_held_against_the_first(
    fitted_checkpoint, tmp_path
):
    photographs = tmp_path / "photographs"
    write_scenes(make_scene_dataset(train=0, dev=0, test=4, size=64), photographs)
    arguments = ("avoid-unsupported", fitted_checkpoint, "--data", photographs)
    data, table = run(tmp_path / "both", *arguments)
    captioner, name = sightline.load(fitted_checkpoint), fitted_checkpoint.name
    changed = [
        captioner.caption_without_unsupported(picture, captioner.caption(picture))[1] is not None
        for picture in sorted(photographs.rglob("*.png"))
    ]
    assert len(changed) == 4
    assert data["changed"][name]["mean"] == np.mean(changed)
    assert set(data["rows"]) == {name, f"{name}, best supported"}
    assert f"| {name} to {name}, best supported |" in table
    assert ("4 pictures are too few" if any(changed) else "No caption was changed") in table


def test_a_caption_must_not_be_worse_for_avoiding_words():
    records = [
        said("r", str(n), "a cat", ["a dog on a sofa"], chosen="a dog" if n % 2 else "a cat")
        for n in range(20)
    ]
    options = avoid_unsupported.Options(metrics=("cider-d", "chair"))
    data = avoid_unsupported.conclude(records, options).data
    assert data["changed"]["r"]["mean"] == 0.5
    sentence = avoid_unsupported.is_no_worse(data).sentence
    assert "r to r, best supported: +0.0 (+0.0 to +0.0) CIDEr-D, -50.0 (" in sentence
    for low, high, expected in (
        (-0.03, -0.01, "not reproduced"),
        (-0.03, 0.05, "not tested"),
        (-0.005, -0.001, "reproduced"),  # less than a point
        (-0.005, 0.05, "reproduced"),
    ):
        change = {"mean": (low + high) / 2, "low": low, "high": high, "count": 200}
        data = {"changes": {"r": {"CIDEr-D": change}}, "changed": {"r": {"mean": 0.2}}}
        assert avoid_unsupported.is_no_worse(data).verdict == expected
    data["changed"]["r"]["mean"] = 0.0
    assert avoid_unsupported.is_no_worse(data).sentence == "No caption was changed."
    data["changes"] = {"r": {}}
    assert avoid_unsupported.is_no_worse(data).verdict == "not tested"


def test_of_spice_there_is_the_whole():
    said_once = [said("r", str(n), "a red dog", ["a red dog runs"]) for n in range(2)]
    rows = paper0_table1.conclude(said_once, paper0_table1.Options(metrics=("spice-spacy",))).data
    (name,) = rows["rows"]["r"]
    assert name.startswith("SPICE-spaCy (")


def test_pictures_of_which_nothing_is_known_say_nothing():
    one = wrong_words(["a dog", "the"], [["a cat"], ["a cat"]])
    other = wrong_words(["a cat", "a cat"], [["a cat"], ["a cat"]])
    assert np.isnan(one.per_image[1])
    assert difference(one, other).mean == 1


def test_a_difference_is_that_of_the_scores_of_the_table():
    references = [["a red dog runs"], ["a cat sleeps on a mat"], ["two birds"]]
    one, other = (
        bleu(captions, references)[0]
        for captions in (
            ["a red dog", "a cat sleeps on the mat", "a bird"],
            ["a dog runs", "a mat", "two birds"],
        )
    )
    assert difference(one, other).mean == one.corpus - other.corpus
    assert difference(one, other).mean != np.mean(one.per_image - other.per_image)
    both = average([one, other])
    weights = np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 1.0]])
    expected = (one.resampled(weights) + other.resampled(weights)) / 2
    assert both.resampled(weights).tolist() == expected.tolist()
    assert both.corpus == both.resampled(np.ones(3))
