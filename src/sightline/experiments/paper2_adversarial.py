"""Paper 2: what the adversarial phase adds to as many further steps of maximum likelihood.

The last phase of a recipe is the game. It and its control start from the same weights, those that
the phases before it end with, and differ in the objective alone. Neither ends early, and scores are
of the best checkpoint of that phase: a game that does harm is not scored as what came before it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sightline.config import to_dict
from sightline.errors import ConfigError
from sightline.experiments.arms_table import compare_arms, gains_in
from sightline.experiments.claims import Answer, Claim
from sightline.experiments.experiment import Arm, Experiment, Findings, Record, no_tasks
from sightline.experiments.training_tasks import TrainingOptions
from sightline.recipe import Recipe, load_recipe
from sightline.training.objectives.cross_entropy import CrossEntropyOptions

BEFORE, TREATED, CONTROL = "before", "adversarial", "control"
GAME, PRETRAINING = "adversarial", "adversarial_pretraining"


@dataclass(frozen=True)
class Options(TrainingOptions):
    """A recipe whose last phase is adversarial."""

    recipe: str = "scenes/hierarchical_adversarial"


def arms(options: Options) -> Sequence[Arm]:
    recipe = load_recipe(options.recipe, options.overrides)
    *_, game = recipe.phases()
    if game.objective["name"] != GAME or not recipe.then:
        raise ConfigError(f"recipe: the last phase of {options.recipe} is not `{GAME}`")
    game = replace(game, dev=replace(game.dev, patience=0, tolerance=None))
    shared = {field.name for field in fields(CrossEntropyOptions)}
    pretraining = {key: value for key, value in game.objective.items() if key in shared}
    control = replace(game, objective={"name": PRETRAINING, **pretraining})
    before = replace(recipe, then=recipe.then[:-1])
    return [
        Arm(BEFORE, options.recipe, _overrides(before), options.seeds),
        Arm(CONTROL, options.recipe, _overrides(control), options.seeds, after=BEFORE),
        Arm(TREATED, options.recipe, _overrides(game), options.seeds, after=BEFORE),
    ]


def _overrides(recipe: Recipe) -> tuple[str, ...]:
    """What makes any recipe this one."""
    return tuple(f"{key}={json.dumps(value)}" for key, value in to_dict(recipe).items())


def conclude(records: Sequence[Record], options: Options) -> Findings:
    """With the collapse of goals, and how often the discriminator is right, at the end."""
    terms = sorted({t for r in records for t in r["terms"] if t in ("collapse", "accuracy")})
    return compare_arms(records, [(CONTROL, BEFORE), (TREATED, BEFORE), (TREATED, CONTROL)], terms)


def game_helps(data: dict[str, Any]) -> Answer:
    return gains_in(data, f"{TREATED} - {CONTROL}", "BLEU-4")


EXPERIMENT = Experiment(
    "paper2-adversarial",
    "Does adversarial training help more than training on for as long?",
    Options,
    no_tasks,
    conclude,
    (
        Claim(
            "section 4.3",
            "Policy gradients from the discriminator improve the captioner.",
            game_helps,
        ),
    ),
    arms,
)
