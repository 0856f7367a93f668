"""The processes of a training run: they live and die with the one that started them."""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy

from sightline.devices import check_bfloat16
from sightline.encoders.workers import (
    end_with_parent,
    end_with_torchrun,
    is_under_torchrun,
    leash_spawned_workers,
)
from sightline.errors import ConfigError, SightlineError, TrainingError
from sightline.memory import is_out_of_memory
from sightline.recipe import Recipe


def make_fabric(recipe: Recipe) -> Fabric:
    """The devices and processes that a recipe asks for, or a `ConfigError`."""
    processors = max(os.cpu_count() or 1, 2)
    devices, nodes = recipe.devices, 1
    if is_under_torchrun():
        devices, nodes = _of_torchrun(recipe)
    if recipe.devices > processors and not torch.cuda.is_available():
        raise ConfigError(
            f"recipe.devices: {recipe.devices} processes, but this machine has {processors} "
            "processors"
        )
    try:
        fabric = Fabric(
            accelerator=recipe.accelerator,
            devices=devices,
            num_nodes=nodes,
            strategy=_strategy() if devices * nodes > 1 else "auto",
            precision=recipe.precision,  # type: ignore[arg-type]
        )
    except (ValueError, RuntimeError) as error:  # names and devices that are not there
        raise ConfigError(f"recipe: {' '.join(str(error).split())}") from None
    if recipe.precision.startswith("bf16") and fabric.device.type == "cpu":
        check_bfloat16(f"recipe.precision: {recipe.precision}")
    return fabric


def _of_torchrun(recipe: Recipe) -> tuple[int, int]:
    """The processes of each machine, and the machines, that torchrun started."""
    end_with_torchrun()
    processes, local = (int(os.environ[name]) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    if recipe.devices not in (1, processes):
        raise ConfigError(
            f"recipe.devices: {recipe.devices}, but torchrun started {processes} processes; leave "
            "devices out"
        )
    if processes % local:
        raise ConfigError("torchrun: every machine must have the same number of processes")
    return local, processes // local


def is_first_process() -> bool:
    """Whether this process writes to the run's folder, of those that torchrun started."""
    return not is_under_torchrun() or os.environ["RANK"] == "0"


def _strategy() -> DDPStrategy:
    # An objective need not train every parameter: cross-entropy leaves masks as they are.
    method: Literal["popen", "spawn"] = "popen" if is_under_torchrun() else "spawn"
    return DDPStrategy(start_method=method, find_unused_parameters=True)


def launch(fabric: Fabric, work: Callable[[Fabric], None]) -> None:
    """Run `work` on every process of a fabric; an error of one of them is raised here."""
    if fabric.world_size == 1:
        fabric.launch(work)
        return
    if is_under_torchrun():
        _launch_under_torchrun(fabric, work)
        return
    leash_spawned_workers()
    failures = multiprocessing.get_context("spawn").SimpleQueue()
    try:
        fabric.launch(partial(_worker, work=work, failures=failures))
    except BaseException as error:
        # Asked before the others are ended, who would complain. A signal is no failure of theirs.
        failure = failures.get() if isinstance(error, Exception) and not failures.empty() else None
        for process in multiprocessing.active_children():  # none may outlive this one
            process.kill()
            process.join()
        if failure is not None:
            raise TrainingError(failure) from None
        raise


def _launch_under_torchrun(fabric: Fabric, work: Callable[[Fabric], None]) -> None:
    """Run `work` in this process, which is one of several; say so if another one has ended."""
    try:
        fabric.launch(work)
        _part()
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        if not isinstance(error, torch.distributed.DistError) and "gloo" not in reason.lower():
            raise
        raise TrainingError(
            f"another process of the run has ended ({reason[-120:]}); start the same command on "
            "all machines again, and it resumes from the last checkpoint"
        ) from None


def _worker(fabric: Fabric, work: Callable[[Fabric], None], failures: Any) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, too, which ends us
    try:
        work(fabric)
        _part()
    except Exception as error:
        failures.put(_in_one_line(error))
        raise


def _part() -> None:
    """End the connection of the processes, once all are done.

    Threads of gloo that still run as a process exits abort it now and then.
    """
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def _in_one_line(error: Exception) -> str:
    if isinstance(error, SightlineError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'files'}: {error.strerror}"
    if is_out_of_memory(error):
        return "there is not enough memory; use fewer devices or a smaller batch"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"a process failed: {type(error).__name__}: {error} ({last.filename}:{last.lineno})"
