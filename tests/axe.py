"""axe, the field's checker of what screen readers need; for pages in a browser."""

import json
import subprocess
from pathlib import Path

import pytest

AXE = "axe-core@4.14.0"


def fetch_axe(folder: Path) -> str:
    """Its script, from npm. Nothing of it is installed, and no script of the package is run."""
    fetch = ["npm", "pack", AXE, "--ignore-scripts", "--pack-destination", str(folder)]
    try:
        subprocess.run(fetch, cwd=folder, check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError):
        pytest.skip(f"npm cannot fetch {AXE} here")
    (archive,) = folder.glob("*.tgz")
    subprocess.run(["tar", "xzf", archive.name], cwd=folder, check=True)
    return (Path(folder) / "package" / "axe.min.js").read_text("utf-8")


def violations(page, axe: str) -> list[str]:
    page.wait_for_timeout(400)  # colours fade
    page.evaluate(axe)
    result = page.evaluate("axe.run()")
    assert len(result["passes"]) > 10
    return [
        f"{broken['id']}: {node['html'][:120]} {json.dumps(node['any'])[:300]}"
        for broken in result["violations"]
        for node in broken["nodes"]
    ]
