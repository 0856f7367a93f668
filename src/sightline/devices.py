"""Which device a captioner runs on, and what that device draws random numbers from."""

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
