"""Checkpoints: a folder with everything needed to caption a picture, and nothing pickled.

    model.safetensors   the weights
    config.json         model, encoder, vocabulary, decoding defaults, training step
    README.md           the model card
    support.safetensors how it checks its words, if it was fitted for that
    encoder.safetensors the image encoder's last phases, if they were trained with the captioner

A training run keeps several such folders; `checkpoints.json` beside them names the best, the last,
and for a run of several phases what each of them ended with. A folder gets its name only when it is
complete, and is named there only after that.
"""

from sightline.checkpoint.config import load_config
from sightline.checkpoint.folder import require_replaceable, save_checkpoint
from sightline.checkpoint.loading import load_encoder, load_model, load_training
from sightline.checkpoint.packing import pack_checkpoint
from sightline.checkpoint.pointers import BUNDLED, find_checkpoint, read_pointers, write_pointers
from sightline.checkpoint.tensors import load_weights

__all__ = [
    "BUNDLED",
    "find_checkpoint",
    "load_config",
    "load_encoder",
    "load_model",
    "load_training",
    "load_weights",
    "pack_checkpoint",
    "read_pointers",
    "require_replaceable",
    "save_checkpoint",
    "write_pointers",
]
