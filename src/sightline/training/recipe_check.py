"""Check that the settings of a recipe fit together, before training starts."""

from pathlib import Path

import torch

from sightline.checkpoint import find_checkpoint, load_config
from sightline.errors import ConfigError
from sightline.metrics.scoring import check_metrics
from sightline.models.registry import create_model
from sightline.recipe import Recipe
from sightline.training.loggers import require_logger
from sightline.training.objectives.registry import create_objective


def check(recipe: Recipe) -> None:
    """Refuse what cannot be trained: a mistake should show before hours of encoding, not after."""
    with torch.device("meta"):  # built without a single number
        model = create_model(recipe.model["name"], 5, 4, recipe.model_options)
    if recipe.precision.startswith("16"):
        raise ConfigError(
            f"precision: {recipe.precision} needs a scaled loss, which is not supported; use "
            "bf16-mixed"
        )
    if recipe.precision in ("bf16-true", "64-true", "64"):
        raise ConfigError(
            f"precision: {recipe.precision} is not supported; use 32-true or bf16-mixed"
        )
    require_logger(recipe.logger)
    if recipe.dev.metric == "METEOR":
        check_metrics(["meteor"])
    for phase in recipe.phases():
        create_objective(phase.objective).check(model)
        # The best checkpoint is that of all phases: their scores must be of one kind.
        if (phase.dev.metric, phase.dev.pictures) != (recipe.dev.metric, recipe.dev.pictures):
            raise ConfigError("then.dev: 'metric' and 'pictures' must be the same in all phases")
    trained_from(recipe)
    start_of(recipe)


def start_of(recipe: Recipe) -> Path | None:
    """The checkpoint that a run begins with, which must be of the recipe's make."""
    if recipe.start_from is None:
        return None
    bundled = recipe.start_from == "bundled"
    start = find_checkpoint(None if bundled else Path(recipe.start_from).expanduser())
    config = load_config(start)
    tuned = config.get("tuned", {}).get("from", recipe.encoder.train_from)
    make = {
        "model.name": (config["model"]["name"], recipe.model["name"]),
        "encoder.name": (config["encoder"]["name"], recipe.encoder.name),
        "encoder.train_from": (tuned, recipe.encoder.train_from),
    }
    for key, (saved, asked) in make.items():
        if saved != asked:
            raise ConfigError(f"start_from: {start} has {key} {saved}, and the recipe {asked}")
    return start


def trained_from(recipe: Recipe) -> str | None:
    """From where on the encoder is trained, in the phases that train it."""
    starts = {phase.encoder.train_from for phase in recipe.phases()} - {None}
    if len(starts) > 1:
        raise ConfigError("then.encoder.train_from: must be the same as in earlier phases")
    return starts.pop() if starts else None
