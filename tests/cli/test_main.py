"""The command line as a whole, run as its users run it."""

import json
import os
import signal
import subprocess
import sys
import time
import types

import click
import pytest
from click.testing import CliRunner

from sightline import __version__
from sightline.cli.main import TRACEBACK, Terminated, cli, main
from sightline.cli.main import run as run_command
from sightline.cli.options import print_json
from sightline.errors import ConfigError


def run(*arguments, **environment):
    """`sightline ARGUMENTS` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from sightline.cli.main import main; main()", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def commands(group, path=()):
    """Every command there is, as the words one types."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def test_help_lists_the_commands_and_imports_no_torch():
    script = (
        "import sys\nfrom sightline.cli.main import cli\n"
        "try: cli(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('torch', 'matplotlib', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("[]")
    assert "data " in done.stdout
    assert "encode " in done.stdout


@pytest.mark.parametrize("path", list(commands(cli)), ids=" ".join)
def test_every_command_has_help(path):
    result = CliRunner().invoke(cli, [*path, "--help"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"Usage: cli {' '.join(path)} ")
    assert len(result.output.splitlines()) > 5


def test_version():
    result = CliRunner().invoke(cli, ["--version"])
    assert result.output == f"sightline, version {__version__}\n"


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["dta"], "Did you mean 'data'?"),
        (["data", "chekc"], "Did you mean 'check'?"),
        (["data", "xyzzy"], "Commands: check, stats, copies, scenes."),
    ],
)
def test_an_unknown_command_suggests(typed, hint):
    result = CliRunner().invoke(cli, typed)
    assert result.exit_code == 2
    assert f"No such command '{typed[-1]}'. {hint}" in result.output


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["caption", "--ouput", "y"], "Did you mean '--output'? See sightline caption --help."),
        (["caption", "--xyzzy"], "No such option '--xyzzy'. See sightline caption --help."),
        (["data", "check", "--fix"], "requires an argument. Add --help to see how it is used."),
        (["reproduction", "x"], "x: there is no such folder; give that of your experiments"),
    ],
)
def test_a_mistyped_line_is_answered_to_the_point(typed, says, capsys):
    assert run_command(typed) == 2
    error = capsys.readouterr().err
    assert error.endswith(f"{says}\n")
    assert "--groups" not in error


def test_completion_script():
    done = run(_SIGHTLINE_COMPLETE="bash_source")
    assert "complete -o nosort -F _sightline_completion sightline" in done.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [("sightline da", ["data"]), ("sightline data ", ["check", "stats", "copies", "scenes"])],
)
def test_completion(words, offered):
    done = run(
        _SIGHTLINE_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split(" ")) - 1),
    )
    assert done.stdout.split() == [f"plain,{name}" for name in offered]


def test_a_mistake_is_one_line_and_exit_code_2(tmp_path):
    done = run("data", "stats", str(tmp_path / "nowhere"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"sightline: {tmp_path / 'nowhere'}: no such file or folder\n"


def test_so_is_what_the_system_refuses(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    target = str(tmp_path / "file" / "scenes")
    monkeypatch.setattr(
        sys,
        "argv",
        ["sightline", "data", "scenes", target, "--train", "1", "--dev", "0", "--test", "0"],
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"sightline: {tmp_path / 'file'}")


def test_freed_memory_stays_with_the_program_and_garbage_with_the_system(monkeypatch):
    asked = []
    for name in ("keep_freed_memory", "leave_garbage_at_exit"):
        monkeypatch.setattr(f"sightline.cli.main.{name}", lambda name=name: asked.append(name))
    monkeypatch.setattr(sys, "argv", ["sightline", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert len(asked) == 2


@pytest.fixture
def failing(monkeypatch):
    """Makes a command that raises what it is given; returns its exit code."""

    def fail(error, name="train"):
        @click.command(name)
        def command():
            raise error

        module = types.ModuleType("failing_command")
        module.command = command
        monkeypatch.setitem(sys.modules, "failing_command", module)
        monkeypatch.setitem(cli.table, name, ("failing_command", "Fails."))
        return run_command([name])

    return fail


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (SystemExit(1), 1, ""),
        (ConfigError("no such\x1b[2J\nword"), 2, r"sightline: no such\x1b[2J\nword"),
        (click.UsageError("No such option"), 2, "sightline: No such option"),
        (OSError(28, "No space left on device", "run"), 2, "run: No space left on device"),
        (MemoryError(), 2, "there is not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 2, "not enough memory"),
        (ZeroDivisionError("by\nzero"), 70, r"a bug in Sightline (ZeroDivisionError: by\nzero)"),
        (KeyboardInterrupt(), 130, "interrupted; the same command resumes from the last"),
        (Terminated(), 143, "terminated; the same command resumes from the last checkpoint"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_every_end_has_its_exit_code_and_one_line(error, code, says, failing, capsys):
    assert failing(error) == code
    printed = capsys.readouterr()
    assert says in printed.err
    assert "\n" not in printed.err.strip()  # (click ends the line that has ^C)
    assert printed.out == ""


def test_a_bug_shows_where_if_asked(failing, monkeypatch, capsys):
    monkeypatch.setenv(TRACEBACK, "1")
    assert failing(ZeroDivisionError()) == 70
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_one_line(number, code, tmp_path):
    ready = tmp_path / "ready"
    script = (
        "import pathlib, sys, time, click\n"
        "from sightline.cli import main\n"
        f"@main.cli.command('wait')\ndef wait():\n    pathlib.Path({str(ready)!r}).touch()\n"
        "    time.sleep(60)\n"
        "main.cli.get_command = lambda context, name: wait\nmain.cli.table['wait'] = ('', '')\n"
        "sys.argv[1:] = ['wait']\nmain.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stderr=subprocess.PIPE,
        text=True,
        # What a shell starts in the background ignores interrupts, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not ready.exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(20) == code
    assert process.stderr.read().endswith("run the same command again\n")


def test_json_holds_no_sign_that_a_terminal_acts_on(capsys):
    name = "caf\udce9\x1b[2J\x9b\u202e.jpg"
    print_json({"picture": name})
    printed = capsys.readouterr().out
    assert printed.replace("\n", "").isprintable()
    assert json.loads(printed) == {"picture": name}
