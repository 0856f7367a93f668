"""What tests of several folders share."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from axe import fetch_axe
from sightline.checkpoint import save_checkpoint
from sightline.encoders.encoder import create_encoder
from sightline.models.registry import create_model
from sightline.regions import Regions
from sightline.support.classifier import SupportClassifier, save_classifier
from sightline.support.familiarity import Familiarity, save_familiarity
from sightline.support.logistic import Logistic
from sightline.text.vocabulary import Vocabulary
from tiny_recipe import write_tiny_recipe

# Test processes share the cores; with several threads each they would mostly wait for each other.
torch.set_num_threads(1)

WORDS = ("a", "the", "red", "cat", "cup", "of", "coffee", "sits", "on", "table")
SIZES = {"region_width": 16, "word_width": 16, "state_width": 16, "attention_width": 16}

SaveCaptioner = Callable[..., Path]
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

TIERS = ("learning", "process", "network")  # what `make test` leaves out
LEFT_OUT = pytest.StashKey[dict[str, int]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: no process is left alone with it in the end."""
    items.sort(key=lambda item: [item.get_closest_marker(tier) is None for tier in TIERS])


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        left_out = item.config.stash[LEFT_OUT]
        chosen_by_tier = item.config.option.markexpr and not item.config.option.keyword
        for tier in TIERS if chosen_by_tier else ():
            if item.get_closest_marker(tier):
                left_out[tier] = left_out.get(tier, 0) + 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # tests are chosen where they run
        session.config.workeroutput["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Count and name what did not run, and why."""
    tiers = [f"{count} {tier}" for tier, count in config.stash[LEFT_OUT].items()]
    if tiers:
        terminalreporter.write_line(f"left out: {', '.join(tiers)}: make test-all runs them")
    names: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        names.setdefault(reason, []).append(report.nodeid.rpartition("/")[2])
    for reason, tests in names.items():
        terminalreporter.write_line(f"left out: {len(tests)}, {reason}: {', '.join(tests)}")


@pytest.fixture(scope="session")
def examples() -> Path:
    """The freely licensed photographs."""
    return Path(__file__).parents[1] / "examples" / "others"


@pytest.fixture(scope="session")
def save_captioner() -> SaveCaptioner:
    """Writes a checkpoint of random weights, loud enough to have opinions; returns its folder."""

    def save(folder: Path, seed: int = 0, words: tuple[str, ...] = WORDS) -> Path:
        torch.manual_seed(seed)
        encoder = create_encoder("efficientnet_lite0", stage="stage4", size=64)
        vocabulary = Vocabulary(words)
        model = create_model("soft_attention", len(vocabulary), encoder.dim, SIZES)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(3)
        config = {
            "model": {"name": "soft_attention", **SIZES},
            "region_dim": encoder.dim,
            "encoder": encoder.spec,
            "decoding": {"beam": 4, "length_power": 0.5},
            "vocabulary": vocabulary.to_json(),
        }
        save_checkpoint(folder, model, config, "# card\n")
        return folder

    return save


@pytest.fixture(scope="session")
def checkpoint(save_captioner: SaveCaptioner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One such checkpoint, to be read only."""
    return save_captioner(tmp_path_factory.mktemp("captioner") / "checkpoint")


@pytest.fixture(scope="session")
def fitted_checkpoint(
    save_captioner: SaveCaptioner, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same with a classifier of words that trusts the likely ones; to be read only."""
    folder = save_captioner(tmp_path_factory.mktemp("fitted") / "checkpoint")
    reference_regions = Regions(torch.rand(3, 16, 112), torch.ones(3, 16) > 0, torch.rand(3, 16, 4))
    names = ("relevance_mean", "log_probability")
    likely = Logistic(np.zeros(2), np.ones(2), np.array([0.0, 4.0]), 2.0)
    save_classifier(
        folder,
        SupportClassifier(
            names, likely, seen=0.7, unsupported=0.4, reference_regions=reference_regions
        ),
    )
    save_familiarity(folder, Familiarity(torch.zeros(112), -1.0))  # every picture is familiar
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium or Chrome, without a window.

    Of a module alone: while its driver runs, no other can, and no test with a loop of its own.
    """
    driver = pytest.importorskip("playwright.sync_api", reason="no Playwright here")
    if BROWSER is None:
        pytest.skip("no Chromium or Chrome here")
    with driver.sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"], timeout=180_000
        )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fetch_axe(tmp_path_factory.mktemp("axe"))


@pytest.fixture
def tiny_recipe(tmp_path: Path) -> Path:
    """The recipe in a file; its regions are cached beside it."""
    return write_tiny_recipe(tmp_path)
