"""The model, the encoder and the state of training that a checkpoint holds."""

from functools import partial
from pathlib import Path
from typing import Any

import torch

from sightline.checkpoint.tensors import Unset, check_shapes, load_tensors, load_weights
from sightline.encoders.encoder import Encoder
from sightline.encoders.precomputed_encoder import PRECOMPUTED, PrecomputedEncoder
from sightline.encoders.registry import ENCODERS
from sightline.encoders.trainable_stages import TrainableStages
from sightline.errors import CheckpointError
from sightline.models.interface import CaptionModel
from sightline.models.registry import MODELS, create_model
from sightline.parsing import read_json
from sightline.plugins import VARIABLE, Registry
from sightline.text.vocabulary import Vocabulary


def load_model(folder: Path, config: dict[str, Any]) -> tuple[CaptionModel, Vocabulary]:
    """The captioner and its words, in evaluation mode."""
    vocabulary = Vocabulary.from_json(config["vocabulary"])
    _require(MODELS, config["model"]["name"], folder, config)
    make = partial(
        create_model,
        config["model"]["name"],
        len(vocabulary),
        config["region_dim"],
        {key: value for key, value in config["model"].items() if key != "name"},
    )
    with torch.device("meta"), Unset():  # no number before the file is known to have it
        check_shapes(folder / "model.safetensors", make())
    model = make()
    load_weights(folder, model=model)
    return model.eval(), vocabulary


def load_encoder(folder: Path, config: dict[str, Any]) -> Encoder:
    """The image encoder, with the weights that were trained with the captioner, if any were."""
    spec = config["encoder"]
    if spec["name"] == PRECOMPUTED:
        return PrecomputedEncoder(Path(spec["features"]), spec["dim"])
    for name in spec["name"].split("+"):
        _require(ENCODERS, name, folder, config)
    encoder = Encoder.from_spec(spec)
    if "tuned" in config:
        trainable = TrainableStages(encoder, config["tuned"]["from"])
        load_weights(folder, encoder=trainable)
        encoder.tuned = trainable.fingerprint
        if encoder.tuned != config["tuned"].get("sha256", encoder.tuned):
            raise CheckpointError(
                f"{folder / 'encoder.safetensors'}: is not the encoder that config.json names "
                "(its SHA-256 differs); copy the checkpoint again"
            )
        encoder.requires_grad_(False)
    return encoder


def load_training(folder: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """What `save_checkpoint` was given to go on training with."""
    training = read_json(folder / "training.json", error=CheckpointError)
    return load_tensors(folder / "training.safetensors"), training


def _require(registry: Registry[Any], name: str, folder: Path, config: dict[str, Any]) -> None:
    """Say which plug-in is missing, where a checkpoint was made with one that is not here."""
    if name in registry.builtin or registry.origin(name) is not None:
        return
    plugins = config.get("plugins")
    module = plugins.get(name) if isinstance(plugins, dict) else None
    if isinstance(module, str) and module.replace(".", "_").isidentifier():
        raise CheckpointError(
            f"{folder}: '{name}' comes from the plug-in {module}, which is not here: install it, "
            f"or set {VARIABLE}={module} if you trust it"
        )
