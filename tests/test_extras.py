"""The optional parts that the code knows are those that can be installed."""

import tomllib
from pathlib import Path

from sightline.extras import EXTRAS, is_installed

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
OPTIONAL = PROJECT["project"]["optional-dependencies"]


def test_every_extra_that_can_be_installed_is_known() -> None:
    assert set(EXTRAS) == set(OPTIONAL) - {"dev", "fuzz"}


def test_the_dev_extra_brings_them() -> None:
    """So a wrong module name here shows: every part is installed where tests run, but wandb."""
    assert [extra for extra in EXTRAS if not is_installed(extra)] in ([], ["wandb"])
