"""Training on two machines by torchrun: one model, exact resume, nothing left behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sightline.checkpoint import find_checkpoint
from sightline.errors import ConfigError
from sightline.recipe import load_recipe
from sightline.training.processes import is_first_process, make_fabric
from two_machines import Machine, two_machines


def start(machines: tuple[Machine, Machine], recipe: Path, run: Path) -> list[subprocess.Popen]:
    """A run on both machines; each has a cache of its own."""
    processes = []
    for rank, machine in enumerate(machines):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        environment |= {"GLOO_SOCKET_IFNAME": machine.interface}
        program = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2"]
        program += [f"--node-rank={rank}", f"--master-addr={machines[0].address}"]
        program += ["--master-port=29511", "--nproc-per-node=1", "-m", "--", "sightline"]
        command = ["train", str(recipe), "model.dropout=0", "checkpoint_every=1", "epochs=2"]
        command += ["encoder.cache=null", "--run", str(run)]
        environment["SIGHTLINE_CACHE"] = str(recipe.parent / f"cache-{rank}")
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

        processes = start(machines, tiny_recipe, killed)
        while not (killed / "step-0000003").exists():
            assert processes[0].poll() is None, processes[0].communicate()[1]
            time.sleep(0.01)
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
    # The same gradients as of one process, so the same weights but for the order of sums.
    alone, together = (
        load_file(find_checkpoint(run) / "model.safetensors") for run in (one, whole)
    )
    for name, tensor in alone.items():
        torch.testing.assert_close(together[name], tensor, rtol=0, atol=1e-5)


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
