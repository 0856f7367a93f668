"""Experiments that look into Transformers, on random weights and on attention made by hand."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from matplotlib.axes import Axes
from PIL import Image

from sightline.cli.experiment import command
from sightline.errors import ConfigError
from sightline.experiments import paper0_figure2, paper0_figure6, paper3_figure2
from sightline.experiments.experiment import Subject
from sightline.experiments.gallery import keep_picture
from sightline.experiments.options import NoOptions
from sightline.experiments.transformer_words import CaptionAttention, gradient_importance
from sightline.models.registry import create_model
from sightline.regions import Regions

SUBJECT = Subject("run", "aligned_transformer", (), lambda: None)


def invoke(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def run(tmp_path, *arguments):
    result = invoke(*arguments, "-o", tmp_path)
    assert result.exit_code == 0, result.exception or result.output
    assert (tmp_path / "figure.svg").exists()
    return json.loads((tmp_path / "data.json").read_text()), result.stdout


def seen(attention, masks=None, importance=None):
    attention = np.array(attention, float)
    masks = None if masks is None else np.array(masks, float)
    aligned = attention if masks is None else attention * np.exp(1 - masks)
    return CaptionAttention(None, None, attention, aligned, masks, np.array(importance, float))


def test_importance_is_the_norm_of_the_gradient_of_each_words_probability():
    torch.manual_seed(0)
    sizes = {"width": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 2, "feed_forward": 8}
    model = create_model("transformer", 9, 5, sizes).double().eval()
    regions = Regions(torch.rand(1, 3, 5).double(), torch.ones(1, 3) > 0, torch.rand(1, 3, 4))
    tokens, words = torch.tensor([[[1, 5, 7]]]), torch.tensor([5, 7, 6])
    hidden = model.hidden(regions).detach().requires_grad_()
    ours = gradient_importance(model, hidden, tokens, words, regions.mask)

    def said(h):
        logits = model.unroll(tokens, model.remember(h, regions.mask)).logits[0, 0]
        return logits.softmax(-1)[torch.arange(3), words]

    # Central differences, one number of h at a time.
    differences = torch.zeros(3, 3, 8).double()
    with torch.no_grad():
        for region in range(3):
            for value in range(8):
                step = torch.zeros_like(hidden)
                step[0, region, value] = 1e-6
                difference = said(hidden + step) - said(hidden - step)
                differences[:, region, value] = difference / 2e-6
    torch.testing.assert_close(ours, differences.norm(dim=-1), rtol=1e-5, atol=1e-9)


def test_kendall_by_layer():
    importance = [[3, 2, 1]]
    attention = [[[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]]  # layer 1 agrees, layer 2 is against
    masks = [[[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]]]
    record = paper0_figure2.measure(seen(attention, masks, importance), SUBJECT)
    assert record["attention"] == [[1.0], [-1.0]]
    assert record["masks"] == [[-1.0], [1.0]]  # of 1 - m
    records = [{"run": "r", "picture": str(n), **record} for n in range(20)]
    findings = paper0_figure2.conclude(records, NoOptions())
    more = [r for r in findings.data["rows"] if r["weights"] == "masks above attention"]
    assert [row["tau"]["mean"] for row in more] == [-2, 2]
    assert paper0_figure2.attention_is_weak(findings.data).verdict == "not reproduced"
    assert paper0_figure2.masks_agree_more(findings.data).verdict == "not tested"  # mean mask .5
    telling = {**findings.data, "masks": {"r": 0.7}}
    assert paper0_figure2.masks_agree_more(telling).verdict == "not reproduced"


def test_figures_2_and_5(aligned, plain, tmp_path):
    data, table = run(tmp_path, "paper0-figure2", aligned, plain)
    kinds = {(row["run"], row["weights"]) for row in data["rows"]}
    assert ("transformer-0", "attention") in kinds
    assert ("aligned_transformer-0", "masks") in kinds
    assert ("transformer-0", "masks") not in kinds
    for row in data["rows"]:
        assert abs(row["tau"]["mean"]) <= 2
        assert row["tau"]["low"] <= row["tau"]["mean"] <= row["tau"]["high"]
    assert "figure 2: “Kendall-τ of attention" in table
    error = invoke("paper0-figure6", plain, "-o", tmp_path / "none").exception
    assert isinstance(error, ConfigError)
    assert "has no alignment; give runs of aligned captioners" in str(error)


def test_divergence_is_of_normalised_weights_and_grows_with_masks():
    attention = [[[0.5, 0.5], [0.5, 0.5]]]
    same = paper0_figure6.measure(seen(attention, [[[0.5, 0.5], [0, 1]]], [[1, 1]]), SUBJECT)
    (low, high) = same["divergence"][0]
    assert low == pytest.approx(0)  # all weights grow alike
    assert high > 0.01
    records = [{"run": "r", "picture": str(n), **same} for n in range(20)]
    data = paper0_figure6.conclude(records, NoOptions()).data
    assert data["masks"] == {"r": 0.5}
    assert paper0_figure6.higher_layers_change_more(data).verdict == "not tested"
    telling = {**data, "masks": {"r": 0.7}}
    assert paper0_figure6.higher_layers_change_more(telling).verdict == "reproduced"


def test_figure_6(aligned, tmp_path):
    data, _ = run(tmp_path, "paper0-figure6", aligned)
    assert [row["layer"] for row in data["rows"]] == [1, 2]
    assert all(0 < row["divergence"]["mean"] < np.log(2) for row in data["rows"])
    assert 0 < data["rows"][0]["mask"]["mean"] < 1


def test_heads_of_the_encoder_and_of_the_words(plain, tmp_path):
    data, table = run(tmp_path, "paper3-figure2", plain, "--pictures", 2)
    kinds = [(row["attention"], row["layer"], row["head"]) for row in data["rows"]]
    pairs = [(layer, head) for layer in (1, 2) for head in (1, 2)]
    assert kinds == [(kind, *pair) for kind in ("self", "inter") for pair in pairs]
    assert all(0 < row["spread"]["mean"] <= 1 for row in data["rows"])
    assert "| transformer-0 | self | 1 | 1 | " in table
    assert "above_area" in data


def test_the_figure_of_heads_has_as_many_pictures_as_asked_for():
    def record(picture):
        weights = [[[0.5, 0.5]]]  # of a layer, a head, and two regions
        kept = {"picture": picture, "self": [[0.5]], "inter": [[0.5]], "above": []}
        boxes = [[0.0, 0.0, 0.5, 1.0], [0.5, 0.0, 1.0, 1.0]]
        drawn = {"words": ["dog"], "inter": weights[0], "self": weights, "boxes": boxes}
        image = keep_picture(Image.new("RGB", (20, 10)))
        return {"run": "r", **kept, "shown": {"image": image, **drawn}}

    def titles(*records):
        figure = paper3_figure2.conclude(records, paper3_figure2.Options()).figure
        return [panel.get_title() for panel in figure.findobj(Axes) if panel.get_title()]

    one = ["picture", "self 1.1", "dog"]
    assert titles(record("a")) == one
    assert titles(record("a"), record("b")) == one + one
    assert titles({key: value for key, value in record("a").items() if key != "shown"}) == []


def test_inter_attention_is_held_against_the_area_of_the_box():
    def answer(values):
        records = [
            {"run": "r", "picture": str(n), "self": [[1.0]], "inter": [[1.0]], "above": [value]}
            for n, value in enumerate(values)
        ]
        above = {"r": paper3_figure2._above(records).to_json()}
        return paper3_figure2.looks_at_what_matters({"above_area": above})

    assert answer([0.1, 0.2] * 10).verdict == "reproduced"
    assert answer([-0.1, 0.1] * 10).verdict == "not tested"
    assert answer([-0.1, -0.2] * 10).verdict == "not reproduced"
    assert answer([]).verdict == "not tested"
    old = paper3_figure2.looks_at_what_matters({})
    assert old.sentence.startswith("The stored result lacks the attention inside boxes")
