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

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.overrides import TorchFunctionMode

from sightline.config import Natural, Positive, Range, from_dict
from sightline.encoders.encoder import Encoder
from sightline.encoders.precomputed_encoder import PRECOMPUTED, PrecomputedEncoder
from sightline.encoders.registry import ENCODERS
from sightline.encoders.trainable_stages import TrainableStages
from sightline.encoders.weights import file_sha256
from sightline.errors import CheckpointError
from sightline.files import CONFIG_BYTES, MEGABYTE, atomic_write, open_regular
from sightline.models.interface import CaptionModel
from sightline.models.registry import MODELS, create_model
from sightline.parsing import read_json, read_text
from sightline.plugins import VARIABLE, Registry
from sightline.support.classifier import has_classifier, load_classifier, save_classifier
from sightline.support.familiarity import load_familiarity, save_familiarity
from sightline.text.vocabulary import Vocabulary

Module = TypeVar("Module", bound=nn.Module)

FORMAT = 1
FILES = (
    "model.safetensors",
    "config.json",
    "README.md",
    "support.safetensors",
    "familiarity.safetensors",
    "encoder.safetensors",
    "training.safetensors",
    "training.json",
)
"""All that a checkpoint may consist of; nothing else is ever deleted."""

_WEIGHTS_BYTES = 20_000 * MEGABYTE
Name = Annotated[str, Range(1, 1000)]
_STEP = re.compile(r"step-\d{7,}|\.step-\d{7,}\.[a-z0-9_]{8}")  # finished, and not
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
        modules: dict[str, nn.Module] = {"model": model}
        if trainable is not None:
            modules["encoder"] = trainable
            config = config | {
                "tuned": {"from": trainable.train_from, "sha256": trainable.fingerprint}
            }
        hashes = {}
        for name, module in modules.items():
            file = unfinished / f"{name}.safetensors"
            _save_tensors(_weights(module), file)
            hashes[file.name] = file_sha256(file)
        config = config | {"sha256": hashes}
        if plugins := _plugins_of(config):
            config = config | {"plugins": plugins}
        (unfinished / "config.json").write_text(
            json.dumps({"format": FORMAT, **config}, indent=1, ensure_ascii=False), "utf-8"
        )
        (unfinished / "README.md").write_text(card, "utf-8")
        if training is not None:
            _save_tensors(tensors or {}, unfinished / "training.safetensors")
            (unfinished / "training.json").write_text(json.dumps(training), "utf-8")
        for file in unfinished.iterdir():
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
        unfinished.chmod(0o755)
        _replace(folder, unfinished)
    except BaseException:
        _delete(unfinished)
        raise


def _save_tensors(tensors: dict[str, torch.Tensor], path: Path) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # a full disk, for one
        raise CheckpointError(f"{path}: cannot be written ({error})") from None


def _replace(folder: Path, unfinished: Path) -> None:
    """Give a finished checkpoint its name, in place of one that has it."""
    if not folder.exists():
        os.replace(unfinished, folder)
        return
    require_replaceable(folder)
    old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    os.replace(folder, old)
    os.replace(unfinished, folder)
    _delete(old)


def require_replaceable(folder: Path) -> None:
    """Refuse to replace a folder that is there, unless it is a checkpoint and nothing else."""
    if not folder.exists():
        return
    others = sorted({path.name for path in folder.iterdir()}.difference(FILES))
    if others or not (folder / "config.json").is_file():
        holds = f"holds {others[0]}" if others else "is not a checkpoint"
        raise CheckpointError(f"{folder}: {holds}; choose a new folder (nothing was changed)")
    load_config(folder)


def _delete(folder: Path) -> None:
    """Delete a checkpoint: the files that one has, and the folder if nothing else is in it."""
    for name in FILES:
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


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
    path = run / "checkpoints.json"
    if not path.exists():
        return {}
    pointers = from_dict(
        _Pointers,
        {"folders": read_json(path, error=CheckpointError)},
        str(path),
        error=CheckpointError,
        joint=": ",
    ).folders
    for name, folder in pointers.items():
        if Path(folder).name != folder or folder == "..":
            raise CheckpointError(f"{path}: '{name}' must be a folder of the run, not '{folder}'")
    if pointers and "last" not in pointers:
        raise CheckpointError(f"{path}: 'last' is missing")
    return pointers


def write_pointers(run: Path, pointers: dict[str, str]) -> None:
    """Name the checkpoints to keep, then delete the others."""
    with atomic_write(run / "checkpoints.json") as file:
        json.dump(pointers, file)
    for folder in run.iterdir():
        is_ours = _STEP.fullmatch(folder.name) and not folder.is_symlink() and folder.is_dir()
        if is_ours and folder.name not in pointers.values():
            _delete(folder)


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
            return path / (pointers.get("best") or pointers["last"])
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
    path = folder / "config.json"
    content = read_json(path, error=CheckpointError)
    form = content.get("format") if isinstance(content, dict) else None
    if form != FORMAT:
        raise CheckpointError(
            f"{path}: format {str(form)[:20]}, and this version reads {FORMAT}: use the version "
            "of Sightline that wrote it"
        )
    from_dict(_Config, content, str(path), error=CheckpointError, strict=False, joint=": ")
    config: dict[str, Any] = content
    return config


@dataclass(frozen=True)
class _Named:
    name: Name


@dataclass(frozen=True)
class _EncoderSpec:
    name: Name
    stage: str | None = None
    size: Annotated[int, Range(32, 1024)] | None = None
    fit: Literal["squash", "crop"] = "squash"
    weights: str | None = None
    sha256: str | None = None
    features: str | None = None
    dim: Annotated[int, Range(1, 65_536)] | None = None

    def __post_init__(self) -> None:
        if (self.name == PRECOMPUTED) != (self.features is not None and self.dim is not None):
            raise CheckpointError("encoder: 'features' and 'dim' are of precomputed features")


@dataclass(frozen=True)
class _Training:
    step: Natural = 0
    epoch: Natural = 0
    seconds: Positive = 0.0
    dev: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class _MeanTraining(_Training):
    mean_of: tuple[_Training | None, ...] = ()


@dataclass(frozen=True)
class _Config:
    """What a configuration holds, and no more than it may; who reads it trusts it."""

    format: int
    model: _Named
    region_dim: Annotated[int, Range(1, 65_536)]
    encoder: _EncoderSpec
    vocabulary: Annotated[list[Name], Range(1, 1_000_000)]
    decoding: dict[str, Any] = field(default_factory=dict)
    training: _MeanTraining | None = None
    tuned: dict[str, Name] | None = None
    sha256: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.tuned is not None and "from" not in self.tuned:
            raise CheckpointError("tuned: 'from' is missing")


@dataclass(frozen=True)
class _Pointers:
    folders: dict[str, Name]


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
    require_replaceable(folder)
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
    if card is None:
        card = read_text(source / "README.md", CONFIG_BYTES, CheckpointError)
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
    make = partial(
        create_model,
        config["model"]["name"],
        len(vocabulary),
        config["region_dim"],
        {key: value for key, value in config["model"].items() if key != "name"},
    )
    with torch.device("meta"), _Unset():  # no number before the file is known to have it
        _check_shapes(folder / "model.safetensors", make())
    model = make()
    load_weights(folder, model=model)
    return model.eval(), vocabulary


class _Unset(TorchFunctionMode):
    """Leaves new parameters unset: to draw numbers for none makes torch import its compiler."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func.__name__ in ("normal_", "uniform_"):
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))


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


def load_weights(folder: Path, **modules: nn.Module) -> None:
    """Put a checkpoint's weights into modules of the same make, by the names of its files."""
    hashes = load_config(folder).get("sha256", {})
    for name, module in modules.items():
        path = folder / f"{name}.safetensors"
        tensors = _load_tensors(path, hashes.get(path.name))
        if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
            raise CheckpointError(f"{path}: holds numbers that are not finite; copy it again")
        try:
            module.load_state_dict(tensors)
        except RuntimeError as error:
            raise _mismatch(path, error) from None


def _mismatch(path: Path, reason: object) -> CheckpointError:
    why = " ".join(str(reason).split())[:200]
    return CheckpointError(f"{path}: does not hold the {path.stem} of config.json ({why})")


def _check_shapes(path: Path, module: nn.Module) -> None:
    """See that a file holds the tensors of a module, of which only the shapes are there."""
    try:
        open_regular(path, _WEIGHTS_BYTES).close()
        with safe_open(path, "pt") as file:
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise _mismatch(path, error) from None
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    for name in sorted({*shapes, *expected}):
        if shapes.get(name) != expected.get(name):
            raise _mismatch(
                path, f"{name} is {shapes.get(name, 'absent')}, not {expected.get(name, 'there')}"
            )


def _load_tensors(path: Path, sha256: str | None = None) -> dict[str, torch.Tensor]:
    try:
        open_regular(path, _WEIGHTS_BYTES).close()
        if sha256 is not None and file_sha256(path) != sha256:
            raise CheckpointError(
                f"{path}: damaged (its SHA-256 is not the one in config.json); copy it again"
            )
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise _mismatch(path, error) from None


def load_training(folder: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """What `save_checkpoint` was given to go on training with."""
    training = read_json(folder / "training.json", error=CheckpointError)
    return _load_tensors(folder / "training.safetensors"), training
