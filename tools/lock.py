"""Write `requirements.lock`: what `pip install .[train]` installs here, each file with its SHA-256.

    python tools/lock.py
    pip install --require-hashes --no-deps --requirement requirements.lock
    pip install --no-deps --no-build-isolation .

pip resolves, and says in its report which files it would take from its index and their hashes;
nothing is installed. The files are those of this Python and platform, which the first line names.
"""

import json
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main():
    report = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet",
         "--disable-pip-version-check", "--report=-", "--constraint=constraints.txt",
         "hatchling", ".[train]"],
        cwd=ROOT, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    lines = locked(json.loads(report.stdout))
    version = ".".join(platform.python_version_tuple()[:2])
    head = (
        f"# Made by tools/lock.py for Python {version}, {platform.system()} {platform.machine()}.\n"
    )
    (ROOT / "requirements.lock").write_text(head + "".join(lines))


def locked(report):
    """A line for each file of pip's report, in order of names; what has no hash is left out.

    >>> archive = {"archive_info": {"hashes": {"sha256": "ab"}}}
    >>> package = {"metadata": {"name": "Tqdm", "version": "4.1"}, "download_info": archive}
    >>> locked({"install": [package]})
    ['tqdm==4.1 --hash=sha256:ab\\n']
    """
    lines = []
    for package in report["install"]:
        sha256 = package["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        name = package["metadata"]["name"].lower()
        if sha256 is not None:
            lines.append(f"{name}=={package['metadata']['version']} --hash=sha256:{sha256}\n")
    return sorted(lines)


if __name__ == "__main__":
    main()
