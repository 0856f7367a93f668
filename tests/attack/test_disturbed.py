"""A little of each trouble, on every command."""

from random import Random

import pytest

from attack.commands import Command, load_commands
from attack.disk import NAMES, TROUBLES, Bench, Broken, can_mount, disturb
from attack.kills import Workshop, contents, kill_until_done
from attack.servers import kill_server

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("attack")]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    load_commands()
    return Workshop(tmp_path_factory.mktemp("attack") / "workshop")


@pytest.fixture(scope="module")
def bench(workshop):
    return Bench(workshop)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_nothing_is_lost(bench, trouble):
    if "disk" in trouble and not can_mount():
        pytest.skip("needs the right to mount")
    assert disturb(bench, trouble, len(NAMES), seed=0) == (len(NAMES), [])


@pytest.mark.parametrize("name", NAMES)
def test_killed_commands_end_with_the_same_bytes(workshop, name):
    kills, failures = kill_until_done(workshop, name, 3, Random(1))
    assert kills >= 3
    assert failures == []


def test_a_killed_server_loses_nothing(workshop):
    kills, failures = kill_server(workshop, 3, Random(1))
    assert kills >= 3
    assert failures == []


def test_a_difference_is_seen(bench, tmp_path):
    bench.finish("encoding", tmp_path / "output")
    bench.require_whole("encoding", tmp_path / "output")
    (vectors,) = (tmp_path / "output").rglob("vectors.f16")
    vectors.write_bytes(vectors.read_bytes()[:-1] + b"?")
    assert contents(tmp_path / "output")
    with pytest.raises(Broken, match="other bytes"):
        bench.require_whole("encoding", tmp_path / "output")


def test_a_command_has_its_exit_code_and_last_line(tmp_path):
    load_commands()
    command = Command(["caption", "nothing.jpg"], tmp_path / "log.txt")
    assert command.wait() == 2
    assert command.last_line().startswith("sightline: nothing.jpg does not exist")
    assert command.peak_memory > 0
