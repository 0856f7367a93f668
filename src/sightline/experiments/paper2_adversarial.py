"""Paper 2: what the adversarial phase adds to as many further steps of maximum likelihood."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sightline.experiments.arms_table import compare_arms, gains_in
from sightline.experiments.claims import Answer, Claim
from sightline.experiments.experiment import Arm, Experiment, Findings, Record, no_tasks
from sightline.experiments.training_tasks import TrainingOptions

TREATED, CONTROL = "adversarial", "control"


@dataclass(frozen=True)
class Options(TrainingOptions):
    """Two recipes that differ in the objective of their last phase alone."""

    recipe: str = "scenes/hierarchical_adversarial"
    control: str = "scenes/hierarchical_control"


def arms(options: Options) -> Sequence[Arm]:
    return [
        Arm(TREATED, options.recipe, (), options.seeds),
        Arm(CONTROL, options.control, (), options.seeds),
    ]


def conclude(records: Sequence[Record], options: Options) -> Findings:
    """With the collapse of goals, and how often the discriminator is right, at the end."""
    terms = sorted({t for r in records for t in r["terms"] if t in ("collapse", "accuracy")})
    return compare_arms(records, [(TREATED, CONTROL)], terms)


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
