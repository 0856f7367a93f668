"""All captioners under one budget: recipes that differ in their model, each with several seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.errors import ConfigError
from sightline.experiments.arms_table import compare_arms
from sightline.experiments.experiment import Arm, Experiment, Findings, Record, no_tasks
from sightline.experiments.training_tasks import TrainingOptions

MODELS = (
    "soft_attention",
    "hard_attention",
    "adaptive_attention",
    "grid_td",
    "transformer",
    "spatial_transformer",
    "aligned_transformer",
    "hierarchical",
)


@dataclass(frozen=True)
class Options(TrainingOptions):
    """Recipes of one budget. The first is what the others are compared with."""

    recipes: tuple[str, ...] = tuple(f"coco_20000/{model}" for model in MODELS)
    metrics: tuple[str, ...] = ("bleu", "meteor", "rouge-l", "cider-d", "chair")

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [Path(recipe).stem for recipe in self.recipes]
        if len(set(names)) < max(len(names), 2):
            raise ConfigError("recipes: give at least two, of different names")


def arms(options: Options) -> Sequence[Arm]:
    return [Arm(Path(recipe).stem, recipe, (), options.seeds) for recipe in options.recipes]


def conclude(records: Sequence[Record], options: Options) -> Findings:
    first, *others = (arm.name for arm in arms(options))
    return compare_arms(records, [(other, first) for other in others])


EXPERIMENT = Experiment(
    "captioners",
    "What do captioners score that are trained alike?",
    Options,
    no_tasks,
    conclude,
    arms=arms,
)
