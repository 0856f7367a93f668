"""A recipe so small that a run takes a second."""

from pathlib import Path
from typing import Any

import yaml

TINY: dict[str, Any] = {
    "data": {
        "scenes": {"difficulty": "easy", "train": 24, "dev": 6, "test": 6, "size": 64},
        "min_count": 1,
    },
    "encoder": {"name": "efficientnet_lite0", "stage": "stage4", "size": 64},
    "model": {
        "name": "soft_attention",
        "region_width": 16,
        "word_width": 16,
        "state_width": 24,
        "attention_width": 16,
        "dropout": 0.2,
    },
    "objective": {"name": "cross_entropy", "doubly_stochastic": 0.01, "label_smoothing": 0.1},
    "optimizer": {"learning_rate": 0.01},
    "schedule": {"name": "cosine", "warmup": 5},
    "batch": {"by": "image", "size": 4},
    "dev": {"metric": "BLEU-4", "every": 2, "patience": 0, "beam": 2},
    "epochs": 4,
    "checkpoint_every": 4,
    "log_every": 3,
}


def write_tiny_recipe(folder: Path) -> Path:
    """The recipe in a file; its regions are cached beside it."""
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump({**TINY, "encoder": {**TINY["encoder"], "cache": str(folder)}}))
    return path
