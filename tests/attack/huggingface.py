"""A captioner's folder in transformers' layout, each of its files damaged."""

from functools import partial
from pathlib import Path

from PIL import Image

import sightline
from attack.mutation import damage_json, damage_safetensors
from attack.target import Target
from sightline.adapters.tiny import tiny


def huggingface_files(folder: Path) -> dict[str, Target]:
    """Whole files, by name; transformers is heavy, so that they are few."""
    captioner = folder / "blip"
    model, (image_processor, tokenizer) = tiny("blip")
    for part in (model, image_processor, tokenizer):
        part.save_pretrained(captioner)
    return {
        f"hf {path.name}": Target(
            path,
            damage_safetensors if path.suffix == ".safetensors" else damage_json,
            partial(_caption, captioner),
        )
        for path in sorted(captioner.iterdir())
        if path.suffix in (".json", ".safetensors")
    }


def _caption(folder: Path) -> None:
    captioner = sightline.load(f"hf:{folder}")
    captioner.caption(Image.new("RGB", (40, 30), "gray"), beam=1, max_length=2)
