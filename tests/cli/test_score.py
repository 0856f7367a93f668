import csv
import json
import sys

import pytest
from click.testing import CliRunner

from sightline.cli.main import main
from sightline.cli.score import command
from sightline.errors import DataError
from sightline.metrics import bleu, cider_d

CAPTIONS = ["a dog runs on grass", "two men sit", "a red ball"]
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


def test_mistakes_are_ours_to_explain(files):
    with pytest.raises(DataError, match="unknown metric 'blue'"):
        run(files, "--metrics", "blue")
    with pytest.raises(DataError, match="no metric named"):
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
