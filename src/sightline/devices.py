"""Which device a captioner runs on, and what that device draws random numbers from."""

import functools
import subprocess
import sys

import torch

from sightline.errors import ConfigError


def choose_device(name: str | torch.device = "auto") -> torch.device:
    """The device of a name such as `cpu`, `cuda:1` or `mps`; `auto` is the fastest there is.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"no device is called '{name}': cpu, cuda, cuda:1, mps or auto") from None
    count = {"cpu": 1, "cuda": torch.cuda.device_count()}.get(device.type)
    if count is None:
        count = int(device.type == "mps" and torch.backends.mps.is_available())
    if (device.index or 0) >= count:
        raise ConfigError(f"this machine has no device '{name}': take --device cpu, or auto")
    return device


def random_states(device: torch.device) -> dict[str, torch.Tensor]:
    """The states of the generators that computations on a device draw from, by kind of device.

    >>> list(random_states(torch.device("cpu")))
    ['cpu']
    """
    states = {"cpu": torch.get_rng_state()}  # seeds are drawn there, whatever the device
    if device.type != "cpu":
        states[device.type] = torch.get_device_module(device).get_rng_state()
    return states


def restore_random_states(states: dict[str, torch.Tensor], device: torch.device) -> None:
    """Put back what `random_states` gave; of a device that it did not know there is nothing."""
    torch.set_rng_state(states["cpu"])
    if device.type in states and device.type != "cpu":
        torch.get_device_module(device).set_rng_state(states[device.type])


_PRODUCTS = """
import torch
for width in (64, 512):
    a = torch.ones(width, width, dtype=torch.bfloat16)
    torch.nn.functional.linear(a, a)
    torch.nn.functional.conv2d(a.view(1, 1, width, width), a[:3, :3].reshape(1, 1, 3, 3))
"""


def check_bfloat16(where: str) -> None:
    """Refuse bfloat16 on a processor that cannot compute in it; `where` is who asks for it.

    Some virtual machines announce instructions that their processor does not have. A process that
    uses one ends without a word, so a child tries a few products first.

    >>> check_bfloat16("--precision bf16")  # doctest: +SKIP
    """
    if signal_number := _killed_by():
        raise ConfigError(
            f"{where}: this processor announces instructions for bfloat16 that it does not have "
            f"(a test was ended by signal {signal_number}); use 32 bits"
        )


@functools.cache
def _killed_by() -> int:
    """The signal that ended products in bfloat16; 0 if they are computed."""
    ended = subprocess.run([sys.executable, "-c", _PRODUCTS], capture_output=True, check=False)
    return max(-ended.returncode, 0)
