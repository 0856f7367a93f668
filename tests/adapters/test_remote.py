"""`--model http://…`: a captioner behind an API, on every command."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

import sightline
from sightline.adapters.chat import ChatError
from sightline.adapters.source import find_source
from sightline.captioner import RemoteCaptioner
from sightline.cli.main import cli
from sightline.errors import CheckpointError, ConfigError, NotApplicableError, SightlineError
from sightline.server.shelf import Shelf


@pytest.fixture
def data(tmp_path, picture):
    """Red balls, and walls; every other reference is of something else."""
    rows = []
    for number in range(24):
        name = tmp_path / f"{number}.png"
        (picture if number % 2 else Image.new("RGB", (8, 8), (0, 0, 255))).save(name)
        caption = "a red ball" if number % 4 == 1 else "a wall" if number % 4 == 0 else "two dogs"
        rows.append({"image": name.name, "captions": [caption], "split": "test"})
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def refused(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert isinstance(result.exception, SightlineError), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_captions_have_the_probabilities_that_the_server_gives(server, data):
    handler, url = server
    one = data.with_name("1.png")
    (row,) = json.loads(run("caption", one, "--model", f"{url}#mine", "--json"))
    (caption,) = row["captions"]
    assert caption["text"] == "A red ball."
    assert [word["log_probability"] for word in caption["words"]] == [-0.5, -0.375, -1.0]
    assert handler.asked[0][2]["model"] == "mine"
    handler.with_log_probs = False
    (row,) = json.loads(run("caption", one, "--model", url, "--json"))
    assert row["captions"][0]["log_probability"] is None


def test_it_is_asked_with_the_key_of_the_environment(server, picture, monkeypatch):
    handler, url = server
    monkeypatch.setenv("SIGHTLINE_API_KEY", "secret")
    captioner = sightline.load(url)
    assert isinstance(captioner, RemoteCaptioner)
    captioner.caption(picture)
    assert handler.asked[0][1]["Authorization"] == "Bearer secret"


def test_an_address_from_a_file_is_told_and_gets_no_key(
    server, picture, tmp_path, monkeypatch, capsys
):
    handler, url = server
    monkeypatch.setenv("SIGHTLINE_API_KEY", "secret")
    (tmp_path / "remote.json").write_text(json.dumps({"url": f"{url}#mine"}))
    sightline.load(tmp_path).caption(picture)
    assert capsys.readouterr().err == f"{tmp_path}: pictures are sent to {url}#mine\n"
    monkeypatch.setenv("SIGHTLINE_API_URL", url)
    sightline.load(tmp_path).caption(picture)
    keys = [headers.get("Authorization") for _, headers, _ in handler.asked]
    assert keys == [None, "Bearer secret"]


def test_several_captions_are_sampled_and_each_is_there_once(server, picture):
    handler, url = server
    (captions,) = sightline.load(url).captions([picture], n_best=3)
    assert [caption.text for caption in captions] == ["A red ball."]
    assert {asked["temperature"] for _, _, asked in handler.asked} == {1.0}


def test_bulk_goes_on_where_it_was(server, data, tmp_path):
    handler, url = server
    out = tmp_path / "out.jsonl"
    pictures = [data.with_name("0.png"), data.with_name("1.png")]
    run("caption", *pictures, "--model", url, "-o", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["caption"] for row in rows] == ["A wall.", "A red ball."]
    count = len(handler.asked)
    run("caption", *pictures, "--model", url, "-o", out, "--skip-existing")
    assert len(handler.asked) == count


def test_it_is_scored_on_a_split(server, data, tmp_path):
    _, url = server
    run("evaluate", url, "--data", data, "--metrics", "bleu", "-o", tmp_path / "scores")
    summary = json.loads((tmp_path / "scores" / "scores.json").read_text())
    assert summary["pictures"] == 24
    assert 0.4 < summary["scores"]["BLEU-1"] < 0.6


def test_its_check_is_fitted_and_kept_in_a_folder(server, data, tmp_path, monkeypatch):
    handler, url = server
    handler.several = True
    monkeypatch.setenv("SIGHTLINE_API_KEY", "secret")
    assert "give a folder for its check with -o" in refused("fit-support", url, "--data", data)
    folder = tmp_path / "theirs"
    given = ["--data", data, "--split", "test", "-o", folder, "--json"]
    (report,) = json.loads(run("fit-support", f"{url}#mine", *given))
    assert report["words"] == 36
    assert {headers["Authorization"] for _, headers, _ in handler.asked} == {"Bearer secret"}
    assert set(report["scores"]) >= {"agreement", "blank", "log_probability"}
    assert find_source(folder).name == f"{url}#mine"
    (row,) = json.loads(
        run("caption", data.with_name("1.png"), "--model", folder, "--check", "--json")
    )
    a, red, ball = row["captions"][0]["words"]
    assert a["support"] is None
    assert red["support"]["evidence"]["agreement"] == 1.0
    assert ball["support"]["verdict"] in ("seen", "doubtful", "not supported")
    captioner = sightline.load(folder)
    picture = data.with_name("1.png")
    again = captioner.check(picture, captioner.caption(picture))
    assert again.words[1].support.score == pytest.approx(red["support"]["score"])
    given = [data, "--model", folder, "-o", tmp_path / "audit"]
    assert "reading a caption that somebody else wrote is not possible" in refused("audit", *given)
    handler.with_log_probs = False
    with pytest.raises(ConfigError, match="gives no log-probabilities any more"):
        captioner.caption(picture, check=True)


def test_a_server_of_ours_serves_it(server, picture):
    _, url = server
    shelf = Shelf([Path(url)])
    assert shelf.names == ("v1",)
    assert shelf.get("v1").caption(picture).text == "A red ball."


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["caption", "{picture}", "--require", "dog"], "'require' cannot be chosen"),
        (["caption", "{picture}", "--beam", "3"], "'beam' cannot be chosen"),
        (["explain", "{picture}", "-o", "{folder}/why.html"], "an explanation is not possible"),
        (["audit", "{data}", "-o", "{folder}/audit"], "fit-support .* with -o"),
        (["caption", "{picture}", "--check"], "fit-support .* with -o"),
    ],
)
def test_what_it_cannot_do_is_one_line(server, data, tmp_path, command, why):
    _, url = server
    names = {"picture": data.with_name("1.png"), "data": data, "folder": tmp_path}
    said = refused(*(part.format(**names) for part in command), "--model", url)
    assert re.search(why, said), said


def test_laws_and_ensembles_are_not_of_servers(server):
    _, url = server
    assert "laws are of captioners" in refused("check-plugin", url)
    with pytest.raises(ConfigError, match="only captioners of Sightline make an ensemble"):
        sightline.load(url, url)


def test_no_server_and_no_address_are_one_line(tmp_path, picture):
    with pytest.raises(ChatError, match="no answer"):
        sightline.load("http://127.0.0.1:9/v1").caption(picture)
    (tmp_path / "remote.json").write_text('{"url": "ftp://elsewhere"}')
    with pytest.raises(CheckpointError, match="'url' must be an address"):
        sightline.load(tmp_path)


def test_nothing_of_its_inside_is_made_up(server, picture):
    captioner = sightline.load(server[1])
    with pytest.raises(NotApplicableError, match="shows captions, and nothing of how"):
        captioner.model(captioner.encode(picture).regions, None)
