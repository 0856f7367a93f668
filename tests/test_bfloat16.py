"""bfloat16 is tried in a child before a process that cannot survive it computes in it."""

import signal

import pytest

from sightline import devices
from sightline.errors import ConfigError


def test_a_child_that_dies_is_one_line(monkeypatch):
    monkeypatch.setattr(devices, "_PRODUCTS", "import os; os.kill(os.getpid(), 4)")
    devices._killed_by.cache_clear()
    try:
        with pytest.raises(ConfigError, match=rf"^recipe.precision: .*signal {signal.SIGILL:d}\)"):
            devices.check_bfloat16("recipe.precision: bf16-mixed")
    finally:
        devices._killed_by.cache_clear()


def test_a_child_that_lives_is_nothing_to_speak_of(monkeypatch):
    monkeypatch.setattr(devices, "_PRODUCTS", "pass")
    devices._killed_by.cache_clear()
    devices.check_bfloat16("bf16")
    devices._killed_by.cache_clear()
