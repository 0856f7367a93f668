"""`config.json` of a checkpoint: what it may hold, and no more."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from sightline.config import Natural, Positive, Range, from_dict
from sightline.encoders.precomputed_encoder import PRECOMPUTED
from sightline.errors import CheckpointError
from sightline.parsing import read_json

FORMAT = 1
Name = Annotated[str, Range(1, 1000)]


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
