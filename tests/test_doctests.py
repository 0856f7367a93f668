"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import sightline.data

MODULES = ["sightline.files", "sightline.progress"] + [
    f"sightline.data.{module.name}" for module in pkgutil.iter_modules(sightline.data.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    found = [doctest.DocTestFinder().find(importlib.import_module(name)) for name in MODULES]
    assert sum(bool(test.examples) for tests in found for test in tests) >= 8
