"""Licences of what is installed: known, and allowed."""

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[1] / "tools" / "licences.py"
sys.path.insert(0, str(TOOL.parent))

from licences import is_allowed, licence_of, not_installed  # noqa: E402


class Fields(dict):
    def get_all(self, name, default):
        return self.get(name, default)


def test_expressions():
    assert is_allowed("MIT")
    assert is_allowed("Apache-2.0 WITH LLVM-exception AND MIT")
    assert is_allowed("(GPL-3.0-only OR MIT) AND BSD-3-Clause")
    for refused in ("GPL-3.0-only", "MIT AND AGPL-3.0-only", "", "Proprietary", "Free for all"):
        assert not is_allowed(refused)


def test_a_licence_is_found_in_whichever_field_it_is():
    assert licence_of(Fields({"Name": "x", "License-Expression": "MIT"})) == "MIT"
    classifier = {"Name": "x", "Classifier": ["License :: OSI Approved :: BSD License"]}
    assert licence_of(Fields(classifier)) == "BSD-3-Clause"
    assert licence_of(Fields({"Name": "x", "License": "GNU GPL\nversion 3"})) == "GNU GPL"
    assert licence_of(Fields({"Name": "x", "License": "UNKNOWN"})) == ""


def test_extras_that_are_not_installed_are_checked_too():
    rows = not_installed([("Wandb", "1", "MIT")], ["wandb==1", "atheris==3", "newcomer==1"])
    assert rows == [("atheris", "3", "Apache-2.0"), ("newcomer", "1", "")]
    assert not is_allowed(rows[1][2])


def test_what_is_installed_is_allowed_and_can_be_listed(tmp_path):
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    subprocess.run([sys.executable, TOOL, "--sbom", tmp_path / "sbom.json"], check=True)
    names = {
        part["name"] for part in json.loads((tmp_path / "sbom.json").read_text())["components"]
    }
    assert {"torch", "pillow", "numpy"} <= {name.lower() for name in names}
