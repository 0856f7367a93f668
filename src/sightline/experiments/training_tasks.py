"""The runs of an experiment that trains: one task for each arm and seed.

Runs are kept under `runs/` in the experiment's folder. One that was interrupted goes on where it
was; one that is finished is only evaluated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.captioner import Captioner
from sightline.checkpoint import find_checkpoint, read_pointers
from sightline.config import require_at_least
from sightline.errors import CheckpointError, ConfigError
from sightline.evaluation.evaluate import evaluate
from sightline.evaluation.history import last_terms, read_history
from sightline.evaluation.results import results_of
from sightline.experiments.estimate import Estimate, estimate_seeds
from sightline.experiments.experiment import Arm, Record, Task
from sightline.metrics.score import number
from sightline.metrics.scoring import REFERENCE_FREE, check_metrics
from sightline.metrics.word_labels import wrong_words
from sightline.parsing import read_json
from sightline.recipe import Recipe, load_recipe
from sightline.training.recipe_check import start_of
from sightline.training.recipe_data import dataset_of
from sightline.training.run import Position


@dataclass(frozen=True)
class TrainingOptions:
    """What experiments that train have in common."""

    seeds: int = 3
    overrides: tuple[str, ...] = ()  # of every arm's recipe, such as [epochs=2, batch.size=16]
    metrics: tuple[str, ...] = ("bleu", "rouge-l", "cider-d")  # as `sightline score` names them

    def __post_init__(self) -> None:
        require_at_least(1, "seeds", seeds=self.seeds)
        for name in check_metrics(self.metrics):
            if name in REFERENCE_FREE:
                raise ConfigError(f"metrics: {name} needs a CLIP model; use sightline score for it")


def training_tasks(
    arms: Sequence[Arm],
    options: TrainingOptions,
    folder: Path,
    locations: Sequence[str] = (),
    show_progress: bool = False,
) -> Iterator[Task]:
    """Train every arm with every seed, and evaluate it on dev and test.

    `locations` are overrides that say where data and caches are; they are no part of what was done.
    All arms of a seed come before the next seed, so that an experiment cut short is still paired.
    """
    for seed in range(max(arm.seeds for arm in arms)):
        for arm in arms:
            if seed < arm.seeds:
                recipe = recipe_of(arm, seed, options, folder, locations)
                run = _run(folder, arm.name, seed)
                yield Task(
                    f"{arm.name}/{seed}",
                    lambda arm=arm, seed=seed, recipe=recipe, run=run: {  # type: ignore[misc]
                        "arm": arm.name,
                        "seed": seed,
                        **(
                            train_and_evaluate(recipe, run, options.metrics, show_progress)
                            if arm.trains
                            else evaluate_start(recipe, options.metrics)
                        ),
                    },
                )


def _run(folder: Path, arm: str, seed: int) -> Path:
    return folder / "runs" / f"{arm}-{seed}"


def recipe_of(
    arm: Arm,
    seed: int,
    options: TrainingOptions,
    folder: Path,
    locations: Sequence[str] = (),
) -> Recipe:
    """What one run of an arm trains: what makes the arm is not for the user to override."""
    overrides = [*options.overrides, *arm.overrides, *locations, f"seed={seed}"]
    if arm.after is not None:
        overrides.append(f"start_from={_run(folder, arm.after, seed)}")
    return load_recipe(arm.recipe, overrides)


def train_and_evaluate(
    recipe: Recipe, run: Path, metrics: Sequence[str], show_progress: bool = False
) -> Record:
    """Train what is left to train; scores of dev (of the best checkpoint) and test, the steps that
    were trained and the epochs to the best checkpoint, the terms of the loss at the end (`mask`,
    `gate` and the like), the dev scores on the way and the processor time of a step."""
    from sightline.training.loop import train

    train(recipe, run, show_progress=show_progress)
    scores = _scores(recipe, find_checkpoint(run), metrics)
    history = read_history(run)
    return {
        "budget": budget_of(recipe),
        **scores,
        "steps": position_of(run / read_pointers(run)["last"]).step,
        "epochs": results_of(run)[-1].epochs,
        "terms": last_terms(history),
        "curve": [{"step": line.step, **line.dev} for line in history if line.dev is not None],
        "step_seconds": step_seconds(run),
    }


def evaluate_start(recipe: Recipe, metrics: Sequence[str]) -> Record:
    """Scores of what a recipe starts from."""
    start = start_of(recipe)
    assert start is not None
    budget = f"{recipe.model['name']}, as it was given"
    return {"budget": budget, **_scores(recipe, start, metrics), "steps": 0, "terms": {}}


def _scores(recipe: Recipe, checkpoint: Path, metrics: Sequence[str]) -> Record:
    cache = None if recipe.encoder.cache is None else Path(recipe.encoder.cache)
    captioner = Captioner.load(checkpoint)
    scores: Record = {}
    for split in ("dev", "test"):
        images = dataset_of(recipe.data).split(split)
        evaluation = evaluate(captioner, images, metrics, split=split, cache=cache)
        references = [image.captions for image in images]
        wrong = wrong_words(evaluation.captions, references)
        scores[split] = {each.name: number(each.corpus) for each in (*evaluation.scores, wrong)}
    return scores


def step_seconds(run: Path) -> float:
    """The processor time of a training step of a run, which other programs do not change much."""
    position = position_of(find_checkpoint(run))
    return position.processor_seconds / max(position.step, 1)


def position_of(checkpoint: Path) -> Position:
    """Where its run was."""
    return Position.from_json(read_json(checkpoint / "training.json", error=CheckpointError))


def budget_of(recipe: Recipe) -> str:
    """What a run is trained on and for how long, in words.

    >>> budget_of(load_recipe("scenes/transformer", ["epochs=9"]))
    'transformer on 1,200 medium scenes, 9 epochs of cross_entropy'
    >>> budget_of(load_recipe("coco_20000/transformer"))
    'transformer on 20,000 pictures of coco, 2 epochs of cross_entropy'
    """
    scenes, pictures = recipe.data.scenes, recipe.data.train_pictures
    count = "" if scenes is None else f"{scenes.train:,} "
    if pictures is not None:
        count = f"{pictures:,} pictures of "
    phases = ", then ".join(
        f"{_length(phase)} of {phase.objective['name']}" for phase in recipe.phases()
    )
    return f"{recipe.model['name']} on {count}{data_name(recipe)}, {phases}"


def data_name(recipe: Recipe) -> str:
    """The data of a recipe, in words.

    >>> data_name(load_recipe("scenes/biased_adaptive_attention"))
    'biased medium scenes'
    """
    scenes = recipe.data.scenes
    if scenes is None:
        return Path(str(recipe.data.path)).stem
    return f"{'biased ' if scenes.bias else ''}{scenes.difficulty} scenes"


def _length(phase: Recipe) -> str:
    count, unit = (phase.steps, "step") if phase.steps else (phase.epochs, "epoch")
    return f"{count:,} {unit}{'s' * (count > 1)}"


# --- what records of runs say --------------------------------------------------------------------


def arms_of(records: Sequence[Record]) -> list[str]:
    """The arms that records are of, in their order."""
    return list(dict.fromkeys(record["arm"] for record in records))


def of_arm(records: Sequence[Record], arm: str) -> list[Record]:
    """The records of an arm, by seed."""
    return sorted((r for r in records if r["arm"] == arm), key=lambda r: int(r["seed"]))


def score_of(records: Sequence[Record], arm: str, split: str, name: str) -> Estimate:
    """The mean of a score over the seeds of an arm."""
    return estimate_seeds([record[split][name] for record in of_arm(records, arm)])


def gain(records: Sequence[Record], arm: str, control: str, split: str, name: str) -> Estimate:
    """How much more an arm scores than another, paired by seed."""
    scores: list[dict[int, Any]] = [
        {record["seed"]: record[split][name] for record in of_arm(records, each)}
        for each in (arm, control)
    ]
    return estimate_seeds([scores[0][s] - scores[1][s] for s in scores[0] if s in scores[1]])
