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

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from sightline.encoders.encoder import Encoder
from sightline.encoders.precomputed_encoder import PRECOMPUTED, PrecomputedEncoder
from sightline.encoders.registry import ENCODERS
from sightline.encoders.trainable_stages import TrainableStages
from sightline.errors import CheckpointError
from sightline.files import atomic_write
from sightline.models.interface import CaptionModel
from sightline.models.registry import MODELS, create_model
from sightline.plugins import VARIABLE, Registry
from sightline.support.classifier import has_classifier, load_classifier, save_classifier
from sightline.support.familiarity import load_familiarity, save_familiarity
from sightline.text.vocabulary import Vocabulary

Module = TypeVar("Module", bound=nn.Module)

FORMAT = 1
BUNDLED = Path(__file__).with_name("bundled")  # the captioner that comes with the package


def save_checkpoint(
    folder: Path,
    model: CaptionModel,
    config: dict[str, Any],
    card: str,
    *,
    trainable: TrainableStages | None = None,
    tensors: dict[str, torch.Tensor] | None = None,
    training: dict[str, Any] | None = None,
) -> None:
    """Write a checkpoint folder, whole or not at all.

    With `trainable`, the phases of the encoder that were trained are in it. With `tensors` and
    `training` it also holds what is needed to go on training.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        save_file(_weights(model), unfinished / "model.safetensors")
        if trainable is not None:
            save_file(_weights(trainable), unfinished / "encoder.safetensors")
            config = config | {
                "tuned": {"from": trainable.train_from, "sha256": trainable.fingerprint}
            }
        if plugins := _plugins_of(config):
            config = config | {"plugins": plugins}
        (unfinished / "config.json").write_text(
            json.dumps({"format": FORMAT, **config}, indent=1, ensure_ascii=False), "utf-8"
        )
        (unfinished / "README.md").write_text(card, "utf-8")
        if training is not None:
            save_file(tensors or {}, unfinished / "training.safetensors")
            (unfinished / "training.json").write_text(json.dumps(training), "utf-8")
        for file in unfinished.iterdir():
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        unfinished.chmod(0o755)
        if folder.exists():  # left by a run that was killed before it could name it
            shutil.rmtree(folder)
        os.replace(unfinished, folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _plugins_of(config: dict[str, Any]) -> dict[str, str]:
    """The modules of the plug-ins that a checkpoint needs: for people, nothing imports them."""
    model, encoders = (str(config.get(part, {}).get("name", "")) for part in ("model", "encoder"))
    origins = {name: ENCODERS.origin(name) for name in encoders.split("+") if name}
    origins |= {model: MODELS.origin(model)} if model else {}
    return {name: module for name, module in origins.items() if module is not None}


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


def _weights(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.contiguous() for name, tensor in module.state_dict().items()}


def read_pointers(run: Path) -> dict[str, str]:
    """Which checkpoint folders of a run are the `best`, the `last`, `stage-1` …"""
    try:
        pointers = json.loads((run / "checkpoints.json").read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise CheckpointError(f"{run / 'checkpoints.json'}: not JSON; delete it") from None
    return {name: str(folder) for name, folder in pointers.items()}


def write_pointers(run: Path, pointers: dict[str, str]) -> None:
    """Name the checkpoints to keep, then delete the others."""
    with atomic_write(run / "checkpoints.json") as file:
        json.dump(pointers, file)
    for folder in run.glob("*step-*"):
        if folder.is_dir() and folder.name not in pointers.values():
            shutil.rmtree(folder)


def find_checkpoint(path: Path | None = None, phase: int | None = None) -> Path:
    """The checkpoint folder that `path` means: itself, or the best one of a run or of its phase.

    Without a path it is the captioner that comes with the package.

    >>> find_checkpoint().name
    'bundled'
    """
    path = path or BUNDLED
    if (path / "config.json").is_file():
        return path
    if pointers := read_pointers(path):
        if phase is None:
            return path / pointers.get("best", pointers["last"])
        if f"stage-{phase}" not in pointers:
            phases = sum(name.startswith("stage-") for name in pointers)
            raise CheckpointError(
                f"{path}: {phases} phases have ended, so there is no phase {phase}"
            )
        return path / pointers[f"stage-{phase}"]
    what = "has no checkpoint in it" if path.exists() else "does not exist"
    raise CheckpointError(f"{path} {what}: give a checkpoint folder or a training run")


def load_config(folder: Path) -> dict[str, Any]:
    """The configuration of a checkpoint folder."""
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder / 'config.json'}: cannot be read ({error})") from None
    if config.get("format") != FORMAT:
        raise CheckpointError(
            f"{folder / 'config.json'}: format {config.get('format')!r}, and this version reads "
            f"{FORMAT}: use the version of Sightline that wrote it"
        )
    for part in ("model", "region_dim", "encoder", "vocabulary"):
        if part not in config:
            raise CheckpointError(f"{folder / 'config.json'}: '{part}' is missing")
    if "tuned" in config and "from" not in config["tuned"]:
        raise CheckpointError(f"{folder / 'config.json'}: 'tuned' has no 'from'")
    return config


def pack_checkpoint(
    sources: Sequence[Path],
    folder: Path,
    card: str | None = None,
    **decoding: float,
) -> None:
    """A checkpoint to give away: in half precision, and without what only training needs.

    Several sources, which must have the same model, encoder and vocabulary (such as the
    checkpoints before and after a phase), are averaged. A source given twice counts twice. The
    picture size is that of the first. `decoding` sets decoding options (`length_power`,
    `no_repeat_ngram`). The weights are rounded, but the captioner computes in full precision.
    """
    if folder.exists() and not (folder / "config.json").is_file():
        raise CheckpointError(f"{folder}: is not a checkpoint; choose a new folder")
    configs = [load_config(source) for source in sources]
    for source, config in zip(sources[1:], configs[1:], strict=True):
        if _make(config) != _make(configs[0]):
            raise CheckpointError(
                f"{source}: has another model, encoder or vocabulary than {sources[0]}"
            )
    source, config = sources[0], configs[0]
    models = [load_model(path, config)[0] for path in sources]
    trainable = None
    if "tuned" in config:
        start = config["tuned"]["from"]
        trainable = _mean(
            [TrainableStages(load_encoder(path, config), start) for path in sources]
        ).half()
    classifier = load_classifier(source) if has_classifier(source) and len(sources) == 1 else None
    familiarity = load_familiarity(source) if len(sources) == 1 else None
    card = (source / "README.md").read_text("utf-8") if card is None else card
    if len(sources) > 1:
        config = config | {"training": {"mean_of": [each.get("training") for each in configs]}}
    config = config | {"decoding": config.get("decoding", {}) | decoding}
    save_checkpoint(folder, _mean(models).half(), config, card, trainable=trainable)
    if classifier is not None:
        save_classifier(folder, classifier)
    if familiarity is not None:
        save_familiarity(folder, familiarity)


def _make(config: dict[str, Any]) -> list[Any]:
    parts = [config[part] for part in ("model", "region_dim", "vocabulary")]
    encoder = config["encoder"] | {"size": None}  # its weights do not depend on it
    return [*parts, encoder, config.get("tuned", {}).get("from")]


def _mean(modules: Sequence[Module]) -> Module:
    """The first of them, with the mean weights of all."""
    first, *rest = (module.state_dict() for module in modules)
    for name, tensor in first.items():
        for state in rest:
            tensor += state[name]
        tensor /= len(modules)
    return modules[0]


def load_model(folder: Path, config: dict[str, Any]) -> tuple[CaptionModel, Vocabulary]:
    """The captioner and its words, in evaluation mode."""
    vocabulary = Vocabulary.from_json(config["vocabulary"])
    _require(MODELS, config["model"]["name"], folder, config)
    model = create_model(
        config["model"]["name"],
        len(vocabulary),
        config["region_dim"],
        {key: value for key, value in config["model"].items() if key != "name"},
    )
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
        encoder.requires_grad_(False)
    return encoder


def load_weights(folder: Path, **modules: nn.Module) -> None:
    """Put a checkpoint's weights into modules of the same make, by the names of its files."""
    for name, module in modules.items():
        path = folder / f"{name}.safetensors"
        try:
            module.load_state_dict(load_file(path))
        except (OSError, SafetensorError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise CheckpointError(
                f"{path}: does not hold the {name} of config.json ({reason})"
            ) from None


def load_training(folder: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """What `save_checkpoint` was given to go on training with."""
    try:
        training: dict[str, Any] = json.loads((folder / "training.json").read_text("utf-8"))
        return load_file(folder / "training.safetensors"), training
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{folder}: training cannot resume from it ({error})") from None
