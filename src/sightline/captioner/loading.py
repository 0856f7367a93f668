"""A captioner's parts, from where they are kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from sightline.adapters.loading import load_parts as load_adapted
from sightline.adapters.source import Source, find_source
from sightline.adapters.wrap import Parts as AdaptedParts
from sightline.checkpoint import find_checkpoint, load_config, load_encoder, load_model
from sightline.decoding.beam import BeamOptions
from sightline.decoding.ensemble import Ensemble
from sightline.devices import choose_device
from sightline.encoders.encoder import Encoder
from sightline.errors import ConfigError
from sightline.models.interface import CaptionModel
from sightline.text.vocabulary import Vocabulary

# What captioners must have in common to be averaged, as their configuration calls it.
_SHARED = {"vocabulary": "vocabulary", "encoder": "encoder", "tuned": "tuned encoder"}


class Parts(NamedTuple):
    """What a captioner is made of."""

    encoder: Encoder
    model: CaptionModel
    vocabulary: Vocabulary
    options: BeamOptions
    checkpoint: Path | None  # the folder it comes from, if it comes from one


def find_remote(paths: Sequence[Path | str]) -> Source | None:
    """The server that is asked for captions, if it is one."""
    sources = [source for path in paths if (source := find_source(path)) is not None]
    if sources and len(paths) > 1:
        raise ConfigError(f"{sources[0]}: only captioners of Sightline make an ensemble")
    return sources[0] if sources and sources[0].is_remote else None


def load_parts(paths: Sequence[Path | str], device: str | torch.device) -> Parts:
    """The parts of a checkpoint, a training run, an ensemble, or a captioner that is not ours."""
    place = choose_device(device)
    source = find_source(paths[0]) if paths else None
    parts = _of_folders(paths) if source is None else _adapted(source)
    return parts._replace(encoder=parts.encoder.to(place), model=parts.model.to(place))


def of_adapted(adapted: AdaptedParts, folder: Path | None = None) -> Parts:
    """The parts of a captioner that is not ours."""
    encoder, model, vocabulary = adapted
    options = BeamOptions().changed({"max_length": model.longest})
    return Parts(encoder, model, vocabulary, options, folder)


def _adapted(source: Source) -> Parts:
    return of_adapted(load_adapted(source.name), source.folder)


def _of_folders(paths: Sequence[Path | str]) -> Parts:
    folders = [find_checkpoint(Path(path)) for path in paths] or [find_checkpoint()]
    configs = [load_config(folder) for folder in folders]
    for folder, config in zip(folders[1:], configs[1:], strict=True):
        for part, name in _SHARED.items():
            if config.get(part) != configs[0].get(part):
                raise ConfigError(
                    f"{folder}: has another {name} than {folders[0]}; only captioners with the "
                    f"same {name} can be averaged"
                )
    loaded = [load_model(folder, config) for folder, config in zip(folders, configs, strict=True)]
    model = loaded[0][0] if len(loaded) == 1 else Ensemble([model for model, _ in loaded])
    options = BeamOptions().changed(
        configs[0].get("decoding", {}), f"{folders[0] / 'config.json'}: decoding"
    )
    encoder = load_encoder(folders[0], configs[0])
    checkpoint = folders[0] if len(folders) == 1 else None
    return Parts(encoder, model, loaded[0][1], options, checkpoint)
