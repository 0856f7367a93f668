"""`sightline explain`: a page, a figure or JSON."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from PIL import Image

from sightline.captions import UNFAMILIAR
from sightline.cli.explain import command
from sightline.cli.main import main
from sightline.errors import ConfigError, NotApplicableError, PictureError
from sightline.explain.methods import METHODS, list_methods
from sightline.support.familiarity import Familiarity, save_familiarity


@pytest.fixture
def run(checkpoint: Path, examples: Path):
    def explain(output: Path, *options: object, picture: Path = examples / "cat.jpg") -> Result:
        arguments = ["--model", checkpoint, picture, "-o", output, *options]
        return CliRunner().invoke(command, [str(argument) for argument in arguments])

    return explain


def content(page: Path) -> dict:
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8")
    )
    assert found is not None
    return json.loads(found[1])


def test_a_page_of_its_own_caption(run, tmp_path: Path) -> None:
    result = run(tmp_path / "new" / "out.html")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / 'new' / 'out.html'}\n"
    data = content(tmp_path / "new" / "out.html")
    methods = [method["name"] for method in data["methods"]]
    assert methods == ["contrastive_lrp", "grad_cam", "guided_grad_cam", "attention"]
    assert len(data["explanations"]) == 4 * len(data["words"])
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out.html"]


def test_what_was_asked_for_is_what_is_explained(run, tmp_path: Path) -> None:
    result = run(
        tmp_path / "out.html",
        *("--caption", "A red cup sits on the table.", "--words", "Cup,table", "--words", "red"),
        *("--method", "attention", "--method", "occlusion", "--method", "attention"),
        *("--why-not", "cat@3", "--why-not", "coffee"),
    )
    assert result.exit_code == 0, result.output
    data = content(tmp_path / "out.html")
    assert [method["name"] for method in data["methods"]] == ["attention", "occlusion"]
    words = [(word["text"], word["kind"]) for word in data["words"]]
    assert words[1:3] == [("red", "said"), ("cup", "said")]
    assert words[7:] == [("cat", "unsaid"), ("coffee", "unsaid")]
    assert data["caption"]["readers_own"]
    explanations = data["explanations"]
    assert [why["word"] for why in explanations] == 2 * [1, 2, 6, 7, 8]
    assert "as word 3; “cup” had" in explanations[3]["why"]
    assert "where it was likeliest" in explanations[4]["why"]


def test_a_method_that_does_not_apply_is_skipped_and_said(run, tmp_path, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NotApplicableError.no_rule("gelu")

    monkeypatch.setitem(METHODS.builtin, "lrp", replace(METHODS.builtin["lrp"], attribute=refuse))
    asked = run(
        tmp_path / "out.html", "--caption", "a cat", "--method", "lrp", "--method", "attention"
    )
    assert asked.exit_code == 1
    assert "lrp was skipped" in asked.stderr
    result = run(tmp_path / "out.html", "--caption", "a cat", "--method", "all")
    assert result.exit_code == 0  # all that can explain it
    # (This captioner is no Transformer.)
    lrp, rollout = result.stderr.splitlines()[-2:]
    assert lrp.startswith("sightline: lrp was skipped: lrp: there is no rule for 'gelu'")
    assert rollout.startswith("sightline: gradient_rollout was skipped: SoftAttention: it has no")
    data = content(tmp_path / "out.html")
    methods = [method["name"] for method in data["methods"]]
    skipped = ("lrp", "gradient_rollout")
    assert methods == [name for name in METHODS.names() if name not in skipped]
    assert data["skipped"][0].startswith("LRP was skipped: lrp: there is no rule for 'gelu'")
    alone = run(tmp_path / "alone.html", "--caption", "a cat", "--method", "lrp")
    assert isinstance(alone.exception, NotApplicableError)
    assert not (tmp_path / "alone.html").exists()


def test_a_figure_and_json(run, tmp_path: Path) -> None:
    quick = ("--caption", "a cat", "--method", "attention")
    assert run(tmp_path / "out.png", *quick).exit_code == 0
    assert Image.open(tmp_path / "out.png").format == "PNG"
    assert Image.open(tmp_path / "out.png").width > 300
    assert run(tmp_path / "out.json", *quick, "--why-not", "cup@3").exit_code == 0
    record = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert record["caption"]["text"] == "a cat"
    assert record["unsaid"][0]["place"] == 2  # after the last word
    assert len(record["explanations"]) == 3


@pytest.mark.parametrize(
    ("output", "options", "says"),
    [
        ("out.htm", (), "out.htm: the output file must end in .html, .png, .json"),
        ("out.html", ("--method", "lpr"), "no method is called 'lpr'; did you mean 'lrp'"),
        ("out.html", ("--caption", "big zebras"), "knows none of the words of 'big zebras'"),
        ("out.html", ("--caption", "."), "has no words"),
        ("out.html", ("--caption", "a cat", "--words", "cup"), "'a cat' does not say 'cup'"),
        ("out.html", ("--caption", "a cat", "--why-not", "cup@4"), "has 2 words, and no position"),
        ("out.html", ("--why-not", "cup@"), "give a word, or a word and its position as in dog@3"),
    ],
)
def test_mistakes(run, tmp_path: Path, output: str, options: tuple[str, ...], says: str) -> None:
    result = run(tmp_path / output, *options)
    assert isinstance(result.exception, ConfigError)
    assert says in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_words_that_it_does_not_know_are_marked_and_the_rest_explained(run, tmp_path) -> None:
    result = run(
        tmp_path / "out.html",
        *("--caption", "a zebra on the table", "--method", "attention"),
        *("--why-not", "mug", "--why-not", "qqq", "--why-not", "table"),
    )
    assert result.exit_code == 0, result.output
    data = content(tmp_path / "out.html")
    kinds = [(word["text"], word["kind"]) for word in data["words"]]
    assert kinds == [
        *(("a", "said"), ("zebra", "unknown"), ("on", "said"), ("the", "said"), ("table", "said")),
        ("cup", "unsaid"),  # the nearest to "mug"; "table" is said
    ]
    assert {why["word"] for why in data["explanations"]} == {0, 2, 3, 4, 5}
    sentences = [unknown["sentence"] for unknown in data["unknown"]]
    assert sentences[0] == "“zebra” is not among its 10 words; it knows none that is near."
    assert "“mug” is not among its 10 words; the nearest that it knows is “cup”." in sentences
    assert "“qqq” is not among its 10 words; it knows none that is near." in sentences


def test_several_pictures_get_a_page_each_and_an_index(
    checkpoint, examples, tmp_path, monkeypatch
) -> None:
    pictures = tmp_path / "pictures"
    (pictures / "more").mkdir(parents=True)
    for name in ("cat.jpg", "more/cat.jpg", "index.jpg"):
        Image.open(examples / "cat.jpg").resize((90, 60)).save(pictures / name)
    (pictures / "broken.jpg").write_bytes(b"no picture")
    folder = tmp_path / "pages"
    arguments = ["--model", checkpoint, pictures, "-o", folder, "--method", "attention"]
    result = CliRunner().invoke(command, [*map(str, arguments), "--why-not", "cup"])
    assert result.exit_code == 1, result.output
    assert "sightline: skipped: " in result.stderr
    assert "broken.jpg" in result.stderr
    names = ["cat.html", "index-2.html", "cat-2.html", "index.html"]
    assert result.stdout.splitlines() == [str(folder / name) for name in names]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    entries = content(folder / "index.html")["pictures"]
    assert {entry["address"] for entry in entries} == set(names) - {"index.html"}
    for entry in entries:
        data = content(folder / entry["address"])
        assert data["index"] == "index.html"
        assert " ".join(word["text"] for word in entry["words"]) == data["caption"]["text"]


def test_names_and_captions_that_are_no_utf8(run, examples, tmp_path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    shutil.copy(examples / "cat.jpg", pictures / os.fsdecode(b"caf\xe9.jpg"))
    folder = tmp_path / "pages"
    result = run(folder, "--method", "attention", picture=pictures)
    assert result.exit_code == 0, result.output
    (entry,) = content(folder / "index.html")["pictures"]
    assert entry["address"] == "caf%E9.html"
    caption = ("--method", "attention", "--caption", "a cat \ud83d")
    result = run(tmp_path / "why.json", *caption)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "why.json").read_bytes())["caption"]["text"] == "a cat \ud83d"


@pytest.mark.parametrize(
    ("output", "options", "says"),
    [
        ("out.html", (), "out.html: for several pictures, give a folder"),
        ("pages", ("--caption", "a cat"), "are for one picture"),
        ("pages", ("--words", "cat"), "are for one picture"),
        ("pages", ("--why-not", "cat@2"), "are for one picture"),
    ],
)
def test_what_is_for_one_picture(examples, tmp_path, output, options, says) -> None:
    arguments = [examples / "cat.jpg", examples / "rocket.jpg", "-o", tmp_path / output, *options]
    result = CliRunner().invoke(command, list(map(str, arguments)))
    assert isinstance(result.exception, ConfigError)
    assert says in str(result.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", ["why.png", "why.html", "pages"])
def test_an_unfamiliar_picture_is_said(
    fitted_checkpoint: Path, examples: Path, tmp_path: Path, output: str
) -> None:
    folder = shutil.copytree(fitted_checkpoint, tmp_path / "unfamiliar")
    pictures = [examples / "cat.jpg", examples / "coffee.jpg"][: 2 if output == "pages" else 1]
    arguments = [*pictures, "--model", folder, "--method", "attention", "-o", tmp_path / output]
    for bias, said in ((-1.0, False), (1.0, True)):
        save_familiarity(folder, Familiarity(torch.zeros(112), bias))
        result = CliRunner().invoke(command, list(map(str, arguments)))
        assert result.exit_code == 0, result.output
        for picture in pictures:
            assert (f"sightline: {picture.name}: {UNFAMILIAR}\n" in result.stderr) is said


def test_a_picture_that_cannot_be_read(run, tmp_path: Path) -> None:
    result = run(tmp_path / "out.html", picture=tmp_path / "nothing.jpg")
    assert isinstance(result.exception, PictureError)


def test_a_mistake_is_one_line_and_exit_code_2(checkpoint, examples, monkeypatch, capsys, tmp_path):
    arguments = ["explain", str(examples / "cat.jpg"), "--model", str(checkpoint)]
    monkeypatch.setattr("sys.argv", ["sightline", *arguments, "-o", str(tmp_path / "out.pdf")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_help_names_every_method_without_waiting_for_torch() -> None:
    script = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from sightline.cli.explain import command\n"
        "print(CliRunner().invoke(command, ['--help'], terminal_width=200).output)\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == "False"
    assert all(name in done.stdout for name in list_methods())


def test_a_missing_picture_is_noticed_before_the_captioner_is_loaded(monkeypatch, tmp_path):
    monkeypatch.setattr("sightline.captioner.Captioner.load", None)
    result = CliRunner().invoke(command, ["absent.jpg", "-o", str(tmp_path / "why.html")])
    assert str(result.exception) == "absent.jpg does not exist: check the path"
