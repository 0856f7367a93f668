"""What an installation takes on disk, by part.

    python benchmarks/install_size.py [--packages]

Counts the files of every package that Sightline and its extras need in the environment it runs in;
extras that are not installed there are left out. An extra is counted on top of a plain install;
extras share packages. The wheels that pip fetches are smaller: compressed, they take between a
third and two thirds of this.
"""

import argparse
import importlib.metadata
import re
from collections.abc import Iterator

from sightline.extras import EXTRAS, is_installed

ACCELERATOR = re.compile(r"nvidia-|cuda-|triton")  # what only a GPU needs of torch


def requirements(package: str, extra: str = "") -> Iterator[str]:
    """The packages that a package needs here, with an extra; by their plain names."""
    from packaging.requirements import Requirement

    for text in importlib.metadata.requires(package) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield plain(requirement.name)
            for wanted in requirement.extras:
                yield from requirements(requirement.name, wanted)


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(packages: Iterator[str], seen: set[str]) -> list[str]:
    """The packages and all that they need, without those seen before."""
    reached: list[str] = []
    for package in packages:
        if package in seen:
            continue
        seen.add(package)
        try:
            needed = list(requirements(package))
        except importlib.metadata.PackageNotFoundError:
            continue
        reached += [package, *closure(iter(needed), seen)]
    return reached


def size(package: str) -> int:
    """Bytes of a package's files."""
    files = importlib.metadata.files(package) or ()
    return sum(path.stat().st_size for file in files if (path := file.locate()).is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", action="store_true", help="list every package")
    arguments = parser.parse_args()
    seen = {"sightline"}
    torch = closure(iter(["torch"]), seen)
    accelerator = [package for package in torch if ACCELERATOR.match(package)]
    parts = {
        "torch": [package for package in torch if package not in accelerator],
        "torch's libraries for a GPU": accelerator,
        "the rest of a plain install": closure(requirements("sightline"), seen),
    }
    for extra in filter(is_installed, EXTRAS):
        parts[f"extra `{extra}`"] = closure(requirements("sightline", extra), set(seen))
    print("| part | megabytes | packages |\n| --- | ---: | ---: |")
    for part, packages in parts.items():
        sizes = {package: size(package) for package in packages}
        print(f"| {part} | {sum(sizes.values()) / 1e6:,.0f} | {len(packages)} |")
        if arguments.packages:
            for package in sorted(sizes, key=sizes.__getitem__, reverse=True):
                print(f"| &nbsp; {package} | {sizes[package] / 1e6:,.1f} | |")


if __name__ == "__main__":
    main()
