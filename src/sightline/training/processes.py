"""The processes of a training run: they live and die with the one that started them."""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy

from sightline.devices import check_bfloat16
from sightline.encoders.workers import end_with_parent
from sightline.errors import ConfigError, SightlineError, TrainingError
from sightline.memory import is_out_of_memory
from sightline.recipe import Recipe


def make_fabric(recipe: Recipe) -> Fabric:
    """The devices and processes that a recipe asks for, or a `ConfigError`."""
    processors = max(os.cpu_count() or 1, 2)
    if recipe.devices > processors and not torch.cuda.is_available():
        raise ConfigError(
            f"recipe.devices: {recipe.devices} processes, but this machine has {processors} "
            "processors"
        )
    try:
        fabric = Fabric(
            accelerator=recipe.accelerator,
            devices=recipe.devices,
            strategy=_strategy() if recipe.devices > 1 else "auto",
            precision=recipe.precision,  # type: ignore[arg-type]
        )
    except (ValueError, RuntimeError) as error:  # names and devices that are not there
        raise ConfigError(f"recipe: {' '.join(str(error).split())}") from None
    if recipe.precision.startswith("bf16") and fabric.device.type == "cpu":
        check_bfloat16(f"recipe.precision: {recipe.precision}")
    return fabric


def _strategy() -> DDPStrategy:
    # An objective need not train every parameter: cross-entropy leaves masks as they are.
    return DDPStrategy(start_method="spawn", find_unused_parameters=True)


def launch(fabric: Fabric, work: Callable[[Fabric], None]) -> None:
    """Run `work` on every process of a fabric; an error of one of them is raised here."""
    if fabric.world_size == 1:
        fabric.launch(work)
        return
    failures = multiprocessing.get_context("spawn").SimpleQueue()
    try:
        fabric.launch(partial(_worker, work=work, failures=failures))
    except BaseException:
        for process in multiprocessing.active_children():  # none may outlive this one
            process.kill()
            process.join()
        if not failures.empty():
            raise TrainingError(failures.get()) from None
        raise


def _worker(fabric: Fabric, work: Callable[[Fabric], None], failures: Any) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, too, which ends us
    try:
        work(fabric)
    except Exception as error:
        failures.put(_in_one_line(error))
        raise


def _in_one_line(error: Exception) -> str:
    if isinstance(error, SightlineError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'files'}: {error.strerror}"
    if is_out_of_memory(error):
        return "there is not enough memory; use fewer devices or a smaller batch"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"a process failed: {type(error).__name__}: {error} ({last.filename}:{last.lineno})"
