"""`sightline caption` on files, folders and patterns."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import click
import pytest
import torch
from click.testing import CliRunner, Result

import sightline
from sightline.captions import UNFAMILIAR, Caption, Support, Word
from sightline.cli.caption import command
from sightline.cli.caption_printing import mark
from sightline.errors import ConfigError, SightlineError
from sightline.support.familiarity import Familiarity, save_familiarity


@pytest.fixture
def album(examples: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "album"
    (folder / "inner").mkdir(parents=True)
    shutil.copy(examples / "cat.jpg", folder / "cat.jpg")
    shutil.copy(examples / "coffee.jpg", folder / "inner" / "coffee.JPG")
    (folder / "notes.txt").write_text("not a picture")
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_files_folders_and_patterns(checkpoint: Path, album: Path) -> None:
    by_folder = run("--model", checkpoint, album)
    assert by_folder.exit_code == 0
    lines = by_folder.output.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        str(album / "cat.jpg"),
        str(album / "inner" / "coffee.JPG"),
    ]
    by_pattern = run("--model", checkpoint, f"{album}/*.jpg")
    assert by_pattern.output.splitlines() == lines[:1]
    assert run("--model", checkpoint, album / "cat.jpg").output.splitlines() == lines[:1]


def test_a_bad_picture_is_named_and_skipped(checkpoint: Path, album: Path) -> None:
    (album / "broken.jpg").write_bytes((album / "cat.jpg").read_bytes()[:2000])
    result = run("--model", checkpoint, album)
    assert result.exit_code == 1
    assert "skipped:" in result.stderr
    assert "broken.jpg is damaged or cut short" in result.stderr
    assert len(result.stdout.splitlines()) == 2


def test_json_holds_everything(checkpoint: Path, album: Path) -> None:
    options = ("--model", checkpoint, album / "cat.jpg", "--n-best", 3, "--json")
    (brief,) = json.loads(run(*options).stdout)
    (record,) = json.loads(run(*options, "--attention").stdout)
    assert "boxes" not in brief["captions"][0]
    assert "attention" not in brief["captions"][0]["words"][0]
    assert record["picture"] == str(album / "cat.jpg")
    assert len(record["captions"]) == 3
    assert set(record["captions"][0]["words"][0]) == {
        "text",
        "log_probability",
        "alternatives",
        "attention",
        "signals",
        "support",
        "read_as",
    }


def test_figures_and_decoding_options(checkpoint: Path, album: Path) -> None:
    result = run(
        *("--model", checkpoint, album / "cat.jpg", "--figure", album / "figures"),
        *("--require", "coffee", "--avoid", "red", "--max-length", 5, "--no-repeat", 1),
    )
    words = result.output.strip().split(": ")[1].split()
    assert "coffee" in words
    assert "red" not in words
    assert len(words) == len(set(words)) <= 5
    assert (album / "figures" / "cat.png").stat().st_size > 10_000


def test_mistakes(checkpoint: Path, album: Path, tmp_path: Path) -> None:
    for arguments, says in (
        ((tmp_path / "nothing-*.jpg",), "no picture matches this pattern"),
        ((album / "inner", "--require", "zebra"), "does not know the word 'zebra'"),
    ):
        result = run("--model", checkpoint, *arguments)
        assert isinstance(result.exception, ConfigError)
        assert says in str(result.exception)
    (tmp_path / "bare").mkdir()
    assert "no pictures in this folder" in str(
        run("--model", checkpoint, tmp_path / "bare").exception
    )


def test_without_a_model_it_is_the_bundled_one(album: Path) -> None:
    (record,) = json.loads(run(album / "cat.jpg", "--json").stdout)
    (caption,) = record["captions"]
    assert caption["text"] == sightline.load().caption(album / "cat.jpg").text


def test_check_marks_words_that_can_be_read_without_colour(
    fitted_checkpoint: Path, album: Path
) -> None:
    options = ("--model", fitted_checkpoint, album / "cat.jpg", "--n-best", 5, "--require", "the")
    options += ("--check", "all")
    (record,) = json.loads(run(*options, "--json").stdout)
    marked = []
    for caption in record["captions"]:
        words = [
            (word["text"], (word["support"] or {}).get("verdict")) for word in caption["words"]
        ]
        marks = {"not supported": "[not seen: {}]", "doubtful": "{}(?)"}
        marked.append(" ".join(marks.get(verdict, "{}").format(text) for text, verdict in words))
    assert "[not seen: " in marked[0]
    assert " the " in f" {marked[0]} "
    lines = run(*options).output.splitlines()
    assert [line.split(": ", 1)[1].rsplit("  (")[0] for line in lines] == marked
    # What follows --check may be a picture.
    fewer = run(*options[:2], *options[3:-2], "--check", options[2]).output
    assert fewer == "\n".join(lines).replace("(?)", "") + "\n"
    coloured = CliRunner().invoke(command, [str(o) for o in options], color=True).output
    assert "\x1b[31m[not seen: " in coloured


def test_doubtful_words_are_marked_if_all_are_asked_for() -> None:
    verdicts = ("seen", "doubtful", "not supported")
    supports = [Support(0.5, verdict, {}) for verdict in verdicts]
    words = tuple(
        Word(text, -1.0, (), (), support=support)
        for text, support in zip(("a", "b", "c", "d"), [None, *supports], strict=True)
    )
    caption = Caption("a b c d", words, -4.0, -1.0, ())
    assert click.unstyle(mark(caption)) == "a b c [not seen: d]"
    assert click.unstyle(mark(caption, doubtful=True)) == "a b c(?) [not seen: d]"


def test_avoid_unsupported_chooses_among_the_beam_and_shows_both(
    fitted_checkpoint: Path, album: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.captioner.writer.SUPPORT_WEIGHT", -50.0)  # so that it is another
    options = ("--model", fitted_checkpoint, album / "cat.jpg", "--beam", 4, "--max-length", 4)
    captions = json.loads(run(*options, "--n-best", 4, "--check", "--json").stdout)[0]["captions"]

    def preference(caption: dict[str, Any]) -> float:
        scores = [word["support"]["score"] for word in caption["words"] if word["support"]]
        return caption["score"] - 50 * sum(map(math.log, scores)) / max(len(scores), 1)

    best = max(captions, key=preference)
    assert best != captions[0], "the test needs a picture whose first caption is not the best"
    (record,) = json.loads(run(*options, "--avoid-unsupported", "--json").stdout)
    assert record["captions"][0]["text"] == captions[0]["text"]
    assert record["without_unsupported"]["text"] == best["text"]
    kept = {word["text"] for word in best["words"]}
    checked = [word["text"] for word in captions[0]["words"] if word["support"]]
    assert record["avoided"] == [word for word in dict.fromkeys(checked) if word not in kept]
    first, second = run(*options, "--avoid-unsupported").output.splitlines()
    assert first.startswith(f"{album / 'cat.jpg'}: ")
    how = f"without {', '.join(record['avoided'])}" if record["avoided"] else "better supported"
    assert second.startswith(f"{album / 'cat.jpg'}, {how}: ")
    only = run("--model", fitted_checkpoint, album / "cat.jpg", "--beam", 1, "--avoid-unsupported")
    assert len(only.output.splitlines()) == 1  # nothing to choose from


def test_what_was_not_fitted_cannot_check(checkpoint: Path, album: Path) -> None:
    for models, says in (
        (("--model", checkpoint), "run sightline fit-support"),
        (("--model", checkpoint, "--model", checkpoint), "only by a single captioner"),
    ):
        result = run(*models, album / "cat.jpg", "--check")
        assert isinstance(result.exception, ConfigError)
        assert says in str(result.exception)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("absent.jpg", "absent.jpg does not exist: check the path"),
        ("https://example.org/dog.jpg", "web addresses are fetched only with --allow-urls"),
        ("-", "standard input is empty: pipe a picture or a list"),
    ],
)
def test_what_is_no_picture_is_noticed_before_the_captioner_is_loaded(
    name: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.captioner.Captioner.load", None)
    result = run(name)
    assert isinstance(result.exception, SightlineError)
    assert says in str(result.exception)


def test_a_word_both_required_and_avoided_is_named(checkpoint: Path, album: Path) -> None:
    result = run("--model", checkpoint, album, "--require", "cat", "--avoid", "cat")
    assert str(result.exception) == "both required and to be avoided: cat"


def test_an_unfamiliar_picture_is_called_so(
    fitted_checkpoint: Path, album: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(fitted_checkpoint, tmp_path / "unfamiliar")
    save_familiarity(folder, Familiarity(torch.zeros(112), 1.0))
    caption, warning = run("--model", folder, album / "cat.jpg").output.splitlines()
    assert warning == f"{album / 'cat.jpg'}, unfamiliar: {UNFAMILIAR}"
    assert [caption] == run("--model", fitted_checkpoint, album / "cat.jpg").output.splitlines()


def test_to_a_file_with_what_failed_in_a_table(checkpoint: Path, album: Path) -> None:
    (album / "broken.jpg").write_bytes((album / "cat.jpg").read_bytes()[:2000])
    output = album / "captions.csv"
    result = run("--model", checkpoint, album, "-o", output)
    assert result.exit_code == 1
    assert f"{output}: 2 captioned, 1 failed" in result.stderr
    assert f"what failed, and why: {output}.failures.jsonl" in result.stderr
    assert result.stdout == ""
    assert len(output.read_text("utf-8").splitlines()) == 3
    (album / "broken.jpg").unlink()
    again = run("--model", checkpoint, album, "-o", output, "--skip-existing")
    assert again.exit_code == 0
    assert "0 captioned, 2 skipped (done already)" in again.stderr


@pytest.mark.parametrize("options", [("--retry",), ("--format", "csv"), ("-o", "x.csv", "--json")])
def test_options_of_the_other_way_are_refused(album: Path, options: tuple[str, ...]) -> None:
    result = run(album, *options)
    assert result.exit_code == 2
    assert " -o" in result.stderr


def test_figures_of_pictures_inside_a_table(checkpoint: Path, album: Path) -> None:
    """Their bytes come with the list, and are let go unless they are needed again."""
    import pandas

    content = (album / "cat.jpg").read_bytes()
    pandas.DataFrame({"image": [content]}).to_parquet(album / "table.parquet")
    options = ("--model", checkpoint, "--figure", album / "figures")
    result = run(album / "table.parquet", *options)
    assert result.exit_code == 0, result.output
    assert [path.name for path in (album / "figures").iterdir()] == ["00000001.png"]


def test_figures_of_pictures_with_the_same_name(checkpoint: Path, album: Path) -> None:
    shutil.copy(album / "inner" / "coffee.JPG", album / "inner" / "cat.jpg")
    shutil.copy(album / "cat.jpg", album / "cat-2.jpg")
    pictures = [album / name for name in ("cat-2.jpg", "cat.jpg", "inner/cat.jpg")]
    assert run("--model", checkpoint, *pictures, "--figure", album / "figures").exit_code == 0
    names = sorted(path.name for path in (album / "figures").iterdir())
    assert names == ["cat-2.png", "cat-3.png", "cat.png"]
    first, second = (album / "figures" / name for name in ("cat.png", "cat-3.png"))
    assert first.read_bytes() != second.read_bytes()
