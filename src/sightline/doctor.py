"""What a report of a problem should say of the machine, and a self-test of a few seconds."""

import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sightline import extras
from sightline.pictures import Picture
from sightline.version import __version__

# A caption, a reference, and what the reference tool (METEOR 1.5) gives for them.
_METEOR = ("a large auto near the sidewalk", "a big car by the pavement", 0.37433384513346846)
_FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16")
_PACKAGES = ("torch", "numpy", "pillow", "safetensors", "click", "matplotlib")


@dataclass(frozen=True)
class Check:
    """A part of the self-test: what was tried, whether it held, and how long it took."""

    name: str
    held: bool
    detail: str
    seconds: float


def describe_machine() -> dict[str, str]:
    """Versions, the processor, memory and which optional parts are installed.

    >>> describe_machine()["sightline"] == __version__
    True
    """
    import torch

    gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        gpus.append("mps")
    installed = [name for name in extras.EXTRAS if extras.is_installed(name)]
    missing = [name for name in extras.EXTRAS if name not in installed]
    return {
        "sightline": __version__,
        "python": f"{platform.python_version()} ({sys.platform}, {platform.machine()})",
        "packages": ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES),
        "processor": f"{os.cpu_count()} cores, {torch.get_num_threads()} threads; "
        + (", ".join(_processor_features()) or "features unknown"),
        "memory": _memory(),
        "gpu": ", ".join(gpus) or "none",
        "parts installed": ", ".join(installed) or "none",
        "parts missing": ", ".join(missing) or "none",
    }


def _processor_features() -> list[str]:
    """Those that decide how fast torch computes; only Linux says."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return []
    lines = (line for line in path.read_text().splitlines() if line.startswith(("flags", "Feat")))
    flags = set(next(lines, "").split())
    return [name for name in _FEATURES if name in flags]


def _memory() -> str:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return "unknown"
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total / 1e9:.1f} GB"


def self_test() -> list[Check]:
    """Caption a drawn scene, close the account of an explanation, compare METEOR with its tool.

    >>> [check.name for check in self_test() if not check.held]
    []
    """
    checks = []
    tests: dict[str, Callable[[], tuple[bool, str]]] = {
        "caption": _caption,
        "explanation": _explanation,
        "scores": _scores,
    }
    if extras.is_installed("meteor"):
        tests["METEOR"] = _meteor
    for name, test in tests.items():
        began = time.perf_counter()
        try:
            held, detail = test()
        except Exception as error:  # whatever it is, it belongs in the report
            held, detail = False, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        checks.append(Check(name, held, detail, time.perf_counter() - began))
    return checks


def _picture() -> Picture:
    """A scene that is drawn, so that nothing but the package is needed."""
    from sightline.data.scenes import make_scene_dataset

    return make_scene_dataset(1, 0, 0, size=128).images[0].picture


def _caption() -> tuple[bool, str]:
    from sightline.captioner import Captioner

    caption = Captioner.load(device="cpu").caption(_picture())
    probable = all(word.log_probability <= 0 for word in caption.words)
    return bool(caption.words) and probable, f'"{caption.text}"'


def _explanation() -> tuple[bool, str]:
    """LRP: what goes to the picture, to the words and to constants adds up to the word's logit."""
    from sightline.captioner import Captioner

    explanations = Captioner.load(device="cpu").explain(_picture(), words=[1, 2])
    error = max(abs(each.remainder / each.total) for each in explanations)
    return error < 1e-4, f"every logit is accounted for to {error:.0e} of it"


def _scores() -> tuple[bool, str]:
    from sightline.metrics.scoring import score

    values = score(["a dog runs"], [["a dog runs", "the dog is running"]], ["bleu", "rouge-l"])
    exact = {name: values[name].corpus for name in ("BLEU-1", "ROUGE-L")}
    held = all(abs(value - 1) < 1e-9 for value in exact.values())
    return held, ", ".join(f"{name} {value:.4f}" for name, value in exact.items())


def _meteor() -> tuple[bool, str]:
    from sightline.metrics.scoring import score

    caption, reference, expected = _METEOR
    value = score([caption], [[reference]], ["meteor"])["METEOR"].corpus
    return abs(value - expected) < 1e-12, f"{value:.6f}, by the reference tool {expected:.6f}"
