"""Write `constraints.txt` anew: every version that it pins, with the SHA-256 of its files.

    .venv/bin/python tools/lock.py          in an environment with every part (make test)

To change a version or add a package, write `name==version` in `constraints.txt` and run this. The
hashes come from pip's package index. They are those of the wheels for Python 3.11 to 3.14 on Linux,
macOS and Windows; of a package without wheels, that of its source. Packages are in three parts:
what `make demo` installs, what `make test` adds, and what only other extras need. Which package
needs which is read from the metadata of what is installed.
"""

import re
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import (
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

sys.path.append(str(Path(__file__).parent))
from install import CONSTRAINTS, DEMO, TEST, read_pins

HEAD = """\
# Every package of every extra, with the SHA-256 of its files. Made by tools/lock.py.
# `make` installs with these hashes (tools/install.py). All of them by hand:
#     pip install --require-hashes --no-deps --requirement constraints.txt
"""
OTHER = "# Other extras:"
# Besides what the packages say: without build isolation, pip leaves the backend's needs to us.
BUILD = ("hatchling", "editables")
PYTHONS = re.compile(r"py3|cp31[1-4]")
PLATFORMS = re.compile(r"any|manylinux.*_(x86_64|aarch64)|macosx.*|win_amd64")


def main():
    pins = read_pins(CONSTRAINTS.read_text("utf-8"))
    with ThreadPoolExecutor(8) as pool:
        hashes = dict(
            zip(pins, pool.map(lambda pin: hashes_of(*pin.split("==")), pins), strict=True)
        )
    parts = parts_of(pins, needed(["sightline[train,heic]", *BUILD]), needed(["sightline[dev]"]))
    lines = [HEAD]
    for heading, names in parts.items():
        lines.append(f"\n{heading}\n")
        for pin in names:
            lines.append(" \\\n    --hash=sha256:".join([pin, *hashes[pin]]) + "\n")
    CONSTRAINTS.write_text("".join(lines), "utf-8")
    missing = [pin for pin in pins if not hashes[pin]]
    sys.exit(f"the index has no files of {', '.join(missing)}" if missing else 0)


def parts_of(pins, demo, test):
    """The pins under their headings.

    >>> parts_of(["a==1", "b==2", "c==3"], {"a"}, {"a", "c"}) == {
    ...     DEMO: ["a==1"], TEST: ["c==3"], OTHER: ["b==2"]}
    True
    """
    parts = {DEMO: [], TEST: [], OTHER: []}
    for pin in sorted(pins, key=str.lower):
        name = canonicalize_name(pin.split("==")[0])
        parts[DEMO if name in demo else TEST if name in test else OTHER].append(pin)
    return parts


def needed(requirements):
    """The names of all packages that some need, as the installed ones say."""
    todo, seen, names = [Requirement(each) for each in requirements], set(), set()
    while todo:
        requirement = todo.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        if key[0] != "sightline":
            names.add(key[0])
        try:
            further = metadata.requires(requirement.name) or []
        except metadata.PackageNotFoundError:
            continue  # not for this platform, or of an extra that is not installed
        for each in map(Requirement, further):
            wanted = ("", *requirement.extras)
            if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in wanted):
                todo.append(each)
    return names


class _Links(HTMLParser):
    """The links of a page of the index (PEP 503)."""

    def __init__(self, page):
        super().__init__()
        self.targets = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "a" and (target := dict(attributes).get("href")):
            self.targets.append(target)


def hashes_of(name, version):
    """The SHA-256 of the files that we would install of a version."""
    request = urllib.request.Request(
        f"{index()}/{canonicalize_name(name)}/", headers={"Accept": "text/html"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return chosen(_Links(answer.read().decode()).targets, version)


def index():
    """pip's package index: the configured one, or pip's own."""
    from pip._internal.configuration import Configuration
    from pip._internal.models.index import PyPI

    configuration = Configuration(isolated=False)
    configuration.load()
    return dict(configuration.items()).get("global.index-url", PyPI.simple_url).rstrip("/")


def chosen(links, version):
    """The hashes of the wheels of a version that we would install; or of its source.

    >>> chosen(["x/a-1-cp312-cp312-win_amd64.whl#sha256=ab", "x/a-1.tar.gz#sha256=cd"], "1")
    ['ab']
    >>> chosen(["x/a-1-cp38-cp38-win32.whl#sha256=ab", "x/a-1.tar.gz#sha256=cd"], "1")
    ['cd']
    """
    wheels, sources = [], []
    for link in links:
        address, _, fragment = link.partition("#sha256=")
        file = address.rpartition("/")[2].replace("%2B", "+")
        if not re.fullmatch(r"[0-9a-f]+", fragment) or f"-{version}" not in file:
            continue
        if not file.endswith(".whl"):
            if file.endswith(".tar.gz") and str(parse_sdist_filename(file)[1]) == version:
                sources.append(fragment)
            continue
        try:
            _, its_version, _, tags = parse_wheel_filename(file)
        except InvalidWheelFilename:
            continue
        if str(its_version) == version and any(map(is_for_us, tags)):
            wheels.append(fragment)
    return sorted(wheels or sources)


def is_for_us(tag):
    """Whether a wheel's tag is of a Python and a platform that Sightline is installed on."""
    is_python = PYTHONS.fullmatch(tag.interpreter) or tag.abi == "abi3"
    return bool(is_python and PLATFORMS.fullmatch(tag.platform) and tag.abi[-1] != "t")


if __name__ == "__main__":
    main()
