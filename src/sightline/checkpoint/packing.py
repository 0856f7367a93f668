"""A checkpoint to give away: small, and perhaps the mean of several."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from sightline.checkpoint.config import load_config
from sightline.checkpoint.folder import require_replaceable, save_checkpoint
from sightline.checkpoint.loading import load_encoder, load_model
from sightline.encoders.trainable_stages import TrainableStages
from sightline.errors import CheckpointError
from sightline.files import CONFIG_BYTES
from sightline.parsing import read_text
from sightline.support.classifier import has_classifier, load_classifier, save_classifier
from sightline.support.familiarity import load_familiarity, save_familiarity

Module = TypeVar("Module", bound=nn.Module)


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
        encoders = [load_encoder(*each) for each in zip(sources, configs, strict=True)]
        trainable = mean_of([TrainableStages(encoder, start) for encoder in encoders]).half()
    classifier = load_classifier(source) if has_classifier(source) and len(sources) == 1 else None
    familiarity = load_familiarity(source) if len(sources) == 1 else None
    if card is None:
        card = read_text(source / "README.md", CONFIG_BYTES, CheckpointError)
    if len(sources) > 1:
        config = config | {"training": {"mean_of": [each.get("training") for each in configs]}}
    config = config | {"decoding": config.get("decoding", {}) | decoding}
    save_checkpoint(folder, mean_of(models).half(), config, card, trainable=trainable)
    if classifier is not None:
        save_classifier(folder, classifier)
    if familiarity is not None:
        save_familiarity(folder, familiarity)


def _make(config: dict[str, Any]) -> list[Any]:
    parts = [config[part] for part in ("model", "region_dim", "vocabulary")]
    encoder = config["encoder"] | {"size": None}  # its weights do not depend on it
    return [*parts, encoder, config.get("tuned", {}).get("from")]


def mean_of(modules: Sequence[Module]) -> Module:
    """The first of them, with the mean weights of all; what it counts stays its own.

    One alone stays as it is, to the bit: a mean would make 0.0 of -0.0.
    """
    if len(modules) == 1:
        return modules[0]
    states = [module.state_dict() for module in modules]
    means = {
        name: torch.stack([state[name] for state in states]).mean(0)
        for name, tensor in states[0].items()
        if tensor.is_floating_point()
    }
    for name, mean in means.items():  # after all are known: two names may share their weights
        states[0][name].copy_(mean)
    return modules[0]
