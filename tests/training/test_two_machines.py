"""Training on two machines by torchrun: one model, exact resume, nothing left behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from attack.commands import is_at_work
from sightline.checkpoint import find_checkpoint
from sightline.errors import ConfigError
from sightline.recipe import load_recipe
from sightline.training.processes import is_first_process, make_fabric
from tiny_runs import gradients_of_one_and_two
from two_machines import Machine, two_machines


def start(machines: tuple[Machine, Machine], recipe: Path, run: Path) -> list[subprocess.Popen]:
    """A run on both machines; each has a cache of its own."""
    command = ["-m", "--", "sightline", "train", str(recipe), "model.dropout=0"]
    command += ["checkpoint_every=1", "epochs=2", "encoder.cache=null", "--run", str(run)]
    return start_torchrun(machines, command, recipe.parent)


def start_torchrun(
    machines: tuple[Machine, Machine], command: list[str], caches: Path
) -> list[subprocess.Popen]:
    """A process on each machine; the agents of torchrun that watch over them."""
    processes = []
    for rank, machine in enumerate(machines):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment |= {"GLOO_SOCKET_IFNAME": machine.interface}
        program = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2"]
        program += [f"--node-rank={rank}", f"--master-addr={machines[0].address}"]
        program += ["--master-port=29511", "--nproc-per-node=1"]
        environment["SIGHTLINE_CACHE"] = str(caches / f"cache-{rank}")
        processes.append(
            subprocess.Popen(
                [*machine.run, *program, *command],
                env=environment,
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
            )
        )
    return processes


def finish(processes: list[subprocess.Popen]) -> tuple[list[int], str]:
    errors = [process.communicate(timeout=900)[1] for process in processes]
    return [process.returncode for process in processes], "".join(errors)


@pytest.mark.process
def test_two_machines_train_as_one_process_and_resume_exactly(tiny_recipe, tmp_path):
    one, whole, killed = tmp_path / "one", tmp_path / "whole", tmp_path / "killed"
    recipe = load_recipe(tiny_recipe, ["model.dropout=0", "checkpoint_every=1", "epochs=2"])
    with two_machines() as machines:
        codes, errors = finish(start(machines, tiny_recipe, whole))
        assert codes == [0, 0], errors
        for rank in (0, 1):  # a machine without the other's cache made its own
            assert list((tmp_path / f"cache-{rank}").rglob("vectors.f16"))

        for step, agent_alone in ((3, False), (6, True)):
            processes = start(machines, tiny_recipe, killed)
            while not (killed / f"step-{step:07d}").exists():
                assert processes[0].poll() is None, processes[0].communicate()[1]
                time.sleep(0.01)
            assert len(machines[1].processes()) >= 2
            if agent_alone:  # torchrun's: the one that would end the worker
                processes[1].kill()
                assert_ends(machines[1])
                assert not (killed / "step-0000012").exists(), "the worker went on to the end"
            else:
                assert machines[1].kill() > 0
            codes, errors = finish(processes)
            assert 0 not in codes
            assert "another process of the run has ended" in errors
            assert not [pid for machine in machines for pid in machine.processes()]
        codes, errors = finish(start(machines, tiny_recipe, killed))
        assert codes == [0, 0], errors

    from sightline.training.loop import train

    train(recipe, one)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*.safetensors"))
    assert len(files) >= 2
    for file in [*files, Path("history.jsonl"), Path("checkpoints.json")]:
        assert (killed / file).read_bytes() == (whole / file).read_bytes()
    # The same weights as of one process but for the order of sums.
    alone, together = (
        load_file(find_checkpoint(run) / "model.safetensors") for run in (one, whole)
    )
    for name, tensor in alone.items():
        torch.testing.assert_close(together[name], tensor, rtol=0, atol=1e-5)


def assert_ends(machine: Machine, seconds: float = 20) -> None:
    """Soon nothing runs on a machine, or it is dead and only waits to be cleared away."""
    deadline = time.monotonic() + seconds
    while left := [pid for pid in machine.processes() if is_at_work(pid)]:
        assert time.monotonic() < deadline, f"{left} outlived the agent"
        time.sleep(0.05)


@pytest.mark.process
def test_two_machines_find_the_gradients_of_one_process_over_one_cache(tiny_recipe, tmp_path):
    def run_two(arguments: list[str]) -> None:
        with two_machines() as machines:
            codes, errors = finish(start_torchrun(machines, arguments, tmp_path))
        assert codes == [0, 0], errors
        # The recipe's cache is a folder that both have: it was filled once, and nothing is torn.
        assert len(list(tmp_path.rglob("vectors.f16"))) == 1
        filled.update({p: p.read_bytes() for p in tmp_path.rglob("vectors.f16")})

    filled: dict[Path, bytes] = {}
    tiny_recipe.write_text(tiny_recipe.read_text().replace("dropout: 0.2", "dropout: 0.0"))
    batches = gradients_of_one_and_two(tiny_recipe, tmp_path, run_two=run_two)
    assert {p: p.read_bytes() for p in tmp_path.rglob("vectors.f16")} == filled
    assert len(batches) == 6
    for one, two in batches:
        assert any(two[name].abs().max() > 1e-3 for name in two if not name.startswith("term "))
        for parameter in {"term nll", *(name for name in one if not name.startswith("term "))}:
            torch.testing.assert_close(two[parameter], one[parameter], rtol=0, atol=1e-6)


def test_what_torchrun_started_is_what_is_trained_on(tiny_recipe, monkeypatch):
    assert is_first_process()
    for name, value in {
        "TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "6", "LOCAL_WORLD_SIZE": "3", "RANK": "4",
        "LOCAL_RANK": "1", "GROUP_RANK": "1", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sightline.training.processes.end_with_torchrun", lambda: None)
    fabric = make_fabric(load_recipe(tiny_recipe, ["accelerator=cpu"]))
    assert (fabric.world_size, fabric.global_rank, fabric.local_rank) == (6, 4, 1)
    assert not is_first_process()
    with pytest.raises(ConfigError, match="torchrun started 6 processes; leave devices out"):
        make_fabric(load_recipe(tiny_recipe, ["devices=2"]))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    with pytest.raises(ConfigError, match="the same number of processes"):
        make_fabric(load_recipe(tiny_recipe))
