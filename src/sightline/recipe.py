"""A recipe: everything that decides a training run, as typed dataclasses read from YAML.

`sightline train --print-config RECIPE` prints one with all its defaults.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml

from sightline.config import Count, Natural, Positive, Range, Share, from_dict, to_dict
from sightline.errors import ConfigError
from sightline.files import CONFIG_BYTES
from sightline.parsing import parse_yaml, read_text
from sightline.recipes import find_recipe

# What version 0.1 called objectives; its recipes and runs still work.
_OLD_OBJECTIVES = {"discriminated": "adversarial_pretraining", "variational": "reinforce"}


Seed = Annotated[int, Range(0, 2**32 - 1)]
Epochs = Annotated[int, Range(1, 1_000_000)]
Pixels = Annotated[int, Range(32, 1024)]  # of a side of an encoder's input


@dataclass(frozen=True)
class ScenesRecipe:
    """Synthetic scenes to train on, drawn in memory."""

    train: Natural = 400
    dev: Natural = 100
    test: Natural = 100
    difficulty: Literal["easy", "medium", "hard"] = "medium"
    size: Annotated[int, Range(32, 1024)] = 128
    bias: Share | None = None
    seed: Seed = 0


@dataclass(frozen=True)
class DataRecipe:
    """Captioned pictures: a path (anything `sightline data check` reads) or scenes."""

    path: str | None = None
    images: str | None = None
    scenes: ScenesRecipe | None = None
    # The dev split of the file is the test split, and so many of its training pictures are dev.
    dev_from_train: Count | None = None
    max_captions: Count | None = None  # per picture; further ones are left out, of every split
    train_pictures: Count | None = None  # train on so many pictures only, always the same
    min_count: Count = 5  # less frequent training words are unknown
    vocabulary_size: Count | None = None  # maximum number of words
    max_length: Annotated[int, Range(1, 1000)] = 20  # words; longer training captions are cut there
    # Mirror training pictures at random, unless a caption mentions left or right. Both versions
    # are cached.
    mirror: bool = False

    def __post_init__(self) -> None:
        if (self.path is None) == (self.scenes is None):
            raise ConfigError("data: give either 'path' or 'scenes'")
        for key in ("dev_from_train", "max_captions", "train_pictures"):
            if self.scenes is not None and getattr(self, key) is not None:
                raise ConfigError(f"data.{key}: does not apply to scenes")


@dataclass(frozen=True)
class EncoderRecipe:
    """The image encoder; its regions are cached, and read from the cache.

    With `train_from`, its stages from there on are trained too, and the stage before is cached.
    """

    name: str = "efficientnet_lite2"
    stage: str | None = None
    size: Pixels | None = None
    fit: Literal["squash", "crop"] = "squash"
    weights: str | None = None
    features: str | None = None  # for `name: precomputed`: a folder of .npz files, or a .tsv
    cache: str | None = None  # folder for caches; default: in the user's cache
    # Number format of the cached regions. Each has its own cache; captioning always uses 32 bits.
    precision: Literal[32, "bf16"] = 32
    train_from: str | None = None  # such as stage5
    learning_rate: Positive = 2e-5  # of the trained stages; it follows the captioner's schedule
    # Crop training pictures at random, to at least this share of their area. They are then decoded
    # by `workers` processes and encoded at every step, not read from the cache.
    random_cut: float = 1.0
    workers: Annotated[int, Range(0, 256)] = 2

    def __post_init__(self) -> None:
        if not 0 < self.random_cut <= 1:
            raise ConfigError(
                "encoder.random_cut: must be a share of the picture, above 0 and at most 1"
            )
        if (self.name == "precomputed") != (self.features is not None):
            raise ConfigError("encoder: 'features' and the name precomputed go together")
        if self.features is not None:
            plain = EncoderRecipe()
            for key in ("stage", "size", "fit", "weights", "precision", "train_from", "random_cut"):
                if getattr(self, key) != getattr(plain, key):
                    raise ConfigError(f"encoder.{key}: does not apply to precomputed features")


@dataclass(frozen=True)
class BatchRecipe:
    """`image`: pictures with their captions. `length`: captions of one length (paper 1)."""

    by: Literal["image", "length"] = "image"
    size: Annotated[int, Range(1, 65_536)] = (
        32  # pictures, or captions; over all processes together
    )
    sort: bool = False  # batch pictures with longest captions of similar length: fewer steps
    captions: Count | None = None  # per picture and epoch, in turn; default: all

    def __post_init__(self) -> None:
        if self.captions is not None and self.by != "image":
            raise ConfigError("batch.captions: is of batches of pictures, that is, by: image")


@dataclass(frozen=True)
class OptimizerRecipe:
    """How a step is taken."""

    name: Literal["adam", "adamw", "rmsprop"] = "adamw"
    learning_rate: Positive = 5e-4
    weight_decay: Positive = 0.01
    betas: tuple[float, float] = (0.9, 0.98)  # adam and adamw
    decay: float = 0.95  # rmsprop
    clip: Positive = 5.0  # largest norm of the gradient; 0: no limit
    # Evaluate and store an exponential moving average over about 1 / (1 - average) steps.
    average: float = 0.0

    def __post_init__(self) -> None:
        if not all(0 <= share < 1 for share in (*self.betas, self.decay, self.average)):
            raise ConfigError("optimizer: betas, decay and average must be from 0 to below 1")


@dataclass(frozen=True)
class ScheduleRecipe:
    """The learning-rate schedule. `plateau` counts evaluations without a better dev score."""

    name: Literal["constant", "cosine", "noam", "plateau"] = "cosine"
    warmup: Natural = 200  # steps
    minimum: Share = 0.0  # share of the learning rate that cosine ends at
    factor: Share = 0.5  # plateau
    patience: Natural = 1  # plateau


@dataclass(frozen=True)
class DevRecipe:
    """Dev captions are decoded by beam search, never teacher-forced."""

    metric: str = "CIDEr-D"  # BLEU-1 … BLEU-4, ROUGE-L, CIDEr-D, METEOR: the best checkpoint's
    every: Count = 1  # epochs
    patience: Natural = 5  # evaluations without a better score before training stops; 0: never stop
    beam: Annotated[int, Range(1, 1000)] = 3
    pictures: Count | None = None  # only the first so many
    # A score that is lower than the best by more than this ends the phase, back at the best.
    tolerance: Positive | None = None


@dataclass(frozen=True)
class PhaseEncoderRecipe:
    """What a further phase trains of the encoder: after a start with all of it frozen."""

    train_from: str
    learning_rate: Positive = EncoderRecipe.learning_rate
    size: Pixels | None = None  # of its pictures; default: as before
    random_cut: Share | None = None  # default: as before


@dataclass(frozen=True)
class PhaseRecipe:
    """A further phase of a run. It starts from the best checkpoint so far.

    A group that is given replaces that of the phase before; what is not given stays as it was.
    """

    objective: dict[str, Any]
    epochs: Epochs | None = None
    steps: Count | None = None  # in place of epochs
    encoder: PhaseEncoderRecipe | None = None
    optimizer: OptimizerRecipe | None = None
    schedule: ScheduleRecipe | None = None
    batch: BatchRecipe | None = None
    dev: DevRecipe | None = None

    def __post_init__(self) -> None:
        _require_name("then.objective", self.objective)
        if (self.epochs is None) == (self.steps is None):
            raise ConfigError("then: give either 'epochs' or 'steps'")
        object.__setattr__(self, "objective", _renamed(self.objective))


@dataclass(frozen=True)
class Recipe:
    """A training run."""

    data: DataRecipe
    model: dict[str, Any] = field(default_factory=lambda: {"name": "soft_attention"})
    objective: dict[str, Any] = field(default_factory=lambda: {"name": "cross_entropy"})
    encoder: EncoderRecipe = field(default_factory=EncoderRecipe)
    batch: BatchRecipe = field(default_factory=BatchRecipe)
    optimizer: OptimizerRecipe = field(default_factory=OptimizerRecipe)
    schedule: ScheduleRecipe = field(default_factory=ScheduleRecipe)
    dev: DevRecipe = field(default_factory=DevRecipe)
    epochs: Epochs = 20
    steps: Count | None = None  # of the first phase, in place of epochs
    then: tuple[PhaseRecipe, ...] = ()  # further phases, such as self-critical training
    # A run or a checkpoint whose weights and words it begins with, instead of random weights;
    # "bundled" is the captioner that comes with the package.
    start_from: str | None = None
    seed: Seed = 0
    checkpoint_every: Count = 200  # steps, besides every evaluation
    log_every: Count = 20  # steps
    # Besides history.jsonl. MLflow: MLFLOW_TRACKING_URI, or a folder in the run.
    logger: Literal["tensorboard", "csv", "mlflow", "wandb"] = "tensorboard"
    devices: Count = 1  # processes on this machine; more than one share every batch
    accelerator: str = "auto"
    precision: str = "32-true"  # as Lightning Fabric names them, such as bf16-mixed

    def __post_init__(self) -> None:
        _require_name("model", self.model)
        _require_name("objective", self.objective)
        object.__setattr__(self, "objective", _renamed(self.objective))
        if self.encoder.features is not None and self.data.mirror:
            raise ConfigError("data.mirror: precomputed features cannot be mirrored")

    @property
    def model_options(self) -> dict[str, Any]:
        """The model's own options, without its name."""
        return {key: value for key, value in self.model.items() if key != "name"}

    def phases(self) -> list["Recipe"]:
        """The run as one recipe per phase.

        >>> recipe = Recipe(DataRecipe("flickr8k"), then=(PhaseRecipe({"name": "x"}, epochs=3),))
        >>> [(phase.objective["name"], phase.epochs) for phase in recipe.phases()]
        [('cross_entropy', 20), ('x', 3)]
        """
        phases = [replace(self, then=())]
        for phase in self.then:
            before = phases[-1]
            given = {f.name: getattr(phase, f.name) for f in fields(phase)}
            changes = {name: value for name, value in given.items() if value is not None}
            changes["steps"] = phase.steps  # none, where a phase counts epochs
            if phase.encoder is not None:
                settings = {name: v for name, v in vars(phase.encoder).items() if v is not None}
                changes["encoder"] = replace(before.encoder, **settings)
            phases.append(replace(before, **changes))
        return phases


def _require_name(group: str, options: dict[str, Any]) -> None:
    if not isinstance(options.get("name"), str):
        raise ConfigError(f"{group}: 'name' is missing")


def _renamed(objective: dict[str, Any]) -> dict[str, Any]:
    """An objective by today's name; version 0.1 had others."""
    return {**objective, "name": _OLD_OBJECTIVES.get(objective["name"], objective["name"])}


def load_recipe(name: Path | str, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe and apply `key.key=value` overrides; every key and value is checked.

    `name` is a file, or the name of a shipped recipe such as `flickr8k/soft_attention`.

    Of a list the key is a number: `then.0.epochs=3` is of the first further phase.
    Relative paths in a recipe are relative to the folder the command runs in.

    >>> load_recipe("scenes/soft_attention", ["epochs=3"]).epochs
    3
    """
    path = find_recipe(name)
    values = parse_yaml(read_text(path, CONFIG_BYTES, ConfigError), str(path))
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: a recipe is a group of keys; see sightline train --help")
    for override in overrides:
        _override(values, override)
    return from_dict(Recipe, values, path.name)


def _override(values: dict[str, Any], override: str) -> None:
    path, equals, text = override.partition("=")
    if not equals:
        raise ConfigError(f"'{override}': an override must be key=value, such as epochs=5")
    value = parse_yaml(text, f"'{override}'")
    *groups, last = path.split(".")
    group: Any = values
    for key in groups:
        group = group[_place(group, key)] if isinstance(group, list) else group.setdefault(key, {})
        if not isinstance(group, dict | list):
            raise ConfigError(f"'{override}': '{key}' is not a group of keys")
    group[_place(group, last)] = value


def _place(group: Any, key: str) -> Any:
    """Where a key is in a group; in a list, such as that of the further phases, a number."""
    if not isinstance(group, list):
        return key
    if not key.isdecimal() or len(key) > 9 or int(key) >= len(group):
        raise ConfigError(
            f"'{key}': must be the index of one of {len(group)} entries, counted from 0"
        )
    return int(key)


def dump_recipe(recipe: Recipe) -> str:
    """The whole recipe as YAML, defaults included."""
    return str(yaml.safe_dump(to_dict(recipe), sort_keys=False))


def load_recipe_of(run: Path) -> Recipe:
    """The recipe that a run was started with."""
    path = run / "recipe.yaml"
    if not run.exists():
        raise ConfigError(f"{run} does not exist: give the folder of a training run")
    if not path.is_file():
        raise ConfigError(
            f"{run}: not a training run (no recipe.yaml); give the dataset with --data"
        )
    return load_recipe(path)
