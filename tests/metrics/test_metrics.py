"""The package: its public names, and what importing it costs."""

import inspect
import subprocess
import sys

import pytest

import sightline.metrics

HEAVY = {"torch", "spacy", "transformers", "pycocoevalcap", "matplotlib"}


@pytest.mark.parametrize("name", sightline.metrics.__all__)
def test_every_public_name_is_there_and_no_module(name):
    assert not inspect.ismodule(getattr(sightline.metrics, name))


@pytest.mark.parametrize("name", [n for n in sightline.metrics.__all__ if n != "METRICS"])
def test_every_public_name_explains_itself(name):
    assert (inspect.getdoc(getattr(sightline.metrics, name)) or "").strip()


@pytest.mark.parametrize(
    "program",
    [
        "from sightline.metrics import bleu, cider_d, meteor, spice, spice_spacy, bertscore, chair",
        # Whoever imports a module first gets the function by its name all the same.
        "import sightline.metrics.bleu; from sightline.metrics import bleu; bleu(['a'], [['a']])",
        "from sightline.metrics import *; tokenize('a dog')",
        "import sightline; sightline.score(['a dog'], [['a dog']])",
    ],
)
def test_importing_metrics_imports_no_heavy_library(program):
    check = f"import sys; found = {HEAVY} & set(sys.modules); assert not found, found"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; {check}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
