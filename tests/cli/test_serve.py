"""`sightline serve`: what it refuses before it listens, and the service files of its page."""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from sightline.cli.serve import command
from sightline.errors import ConfigError

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list:
    """The settings that a server would have run with."""
    seen: list = []
    monkeypatch.setattr("sightline.server.run.run", lambda settings, *rest: seen.append(settings))
    monkeypatch.delenv("SIGHTLINE_TOKEN", raising=False)
    return seen


def serve(*arguments: str) -> None:
    result = CliRunner().invoke(command, arguments)
    if result.exception is not None:
        raise result.exception


def test_this_machine_needs_no_token_and_another_address_gets_one(started, tmp_path) -> None:
    serve()
    serve("--host", "0.0.0.0", "--name", "Photos.LAN")
    assert started[0].token is None
    assert len(started[1].token) >= 32
    assert started[1].names == ("photos.lan",)


def test_a_token_comes_from_a_file_or_the_environment(started, tmp_path, monkeypatch) -> None:
    (tmp_path / "token").write_text("  a-token-from-a-file-1234\n")
    serve("--token-file", str(tmp_path / "token"))
    monkeypatch.setenv("SIGHTLINE_TOKEN", "a-token-of-the-environment")
    serve()
    assert [one.token for one in started] == [
        "a-token-from-a-file-1234",
        "a-token-of-the-environment",
    ]
    monkeypatch.setenv("SIGHTLINE_TOKEN", "short")
    with pytest.raises(ConfigError, match="too short"):
        serve()


def test_what_cannot_be_served_is_said(started, tmp_path) -> None:
    with pytest.raises(ConfigError, match="there is no such folder"):
        serve(str(tmp_path / "nowhere"))
    with pytest.raises(Exception, match="nowhere"):
        serve("--model", str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no pictures in this folder"):
        serve(str(tmp_path / "empty"), "--review")
    assert started == []


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="choose another --port"):
            serve("--port", str(taken.getsockname()[1]))


def test_a_host_that_cannot_be_is_said(monkeypatch) -> None:
    monkeypatch.setenv("SIGHTLINE_TOKEN", "a-token-of-the-environment")
    with pytest.raises(ConfigError, match=r"cannot listen on a\.\.b"):
        serve("--host", "a..b")


def block(kind: str) -> str:
    return re.search(rf"```{kind}\n(.*?)```", PAGE.read_text("utf-8"), re.S)[1]


def test_the_unit_of_the_page_is_one(tmp_path) -> None:
    """Verified by systemd where it is there; its command is one that starts a server."""
    unit = block("ini")
    arguments = re.search(r"^ExecStart=\S+ serve (.*)$", unit, re.M)[1].split()
    assert command.make_context("serve", arguments).params["port"] == 8765
    if shutil.which("systemd-analyze"):
        assert complaints(unit, tmp_path) == ""
        assert "NoSuchKey" in complaints(unit.replace("MemoryMax", "NoSuchKey"), tmp_path)


def complaints(unit: str, folder: Path) -> str:
    """What systemd says of a unit; of its program only that there is one."""
    file = folder / "sightline.service"
    program = f"ExecStart={shutil.which('true')}"
    file.write_text(re.sub(r"^ExecStart=\S+", program, unit, flags=re.M))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", file],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
    )
    return done.stderr


def test_the_command_of_the_container_starts_a_server() -> None:
    *_, line = block("dockerfile").strip().splitlines()
    words = re.findall(r'"([^"]+)"', line)
    assert words[:2] == ["sightline", "serve"]
    assert command.make_context("serve", words[2:]).params["host"] == "0.0.0.0"
