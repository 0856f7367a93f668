"""Paper 1: hard against soft attention under the same regularisation, data, steps and seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sightline.experiments.arms_table import compare_arms, gains_in
from sightline.experiments.claims import Answer, Claim
from sightline.experiments.experiment import Arm, Experiment, Findings, Record, no_tasks
from sightline.experiments.training_tasks import TrainingOptions

HARD, SOFT = "hard", "soft"


@dataclass(frozen=True)
class Options(TrainingOptions):
    """Both arms get these, so that they differ in their attention alone."""

    recipe: str = "scenes/soft_attention"
    label_smoothing: float = 0.1
    doubly_stochastic: float = 0.01
    reinforce: float = 0.05  # λ_r, as in scenes/hard_attention
    entropy: float = 0.01  # λ_e


def arms(options: Options) -> Sequence[Arm]:
    shared = (
        f"label_smoothing: {options.label_smoothing}, "
        f"doubly_stochastic: {options.doubly_stochastic}"
    )
    own = f"reinforce: {options.reinforce}, entropy: {options.entropy}"
    return [
        Arm(SOFT, options.recipe, (f"objective={{name: cross_entropy, {shared}}}",), options.seeds),
        Arm(
            HARD,
            options.recipe,
            ("model.name=hard_attention", f"objective={{name: reinforce, {shared}, {own}}}"),
            options.seeds,
        ),
    ]


def conclude(records: Sequence[Record], options: Options) -> Findings:
    return compare_arms(records, [(HARD, SOFT)])


def hard_wins(data: dict[str, Any]) -> Answer:
    # On Flickr8k 21.3 against 19.5.
    return gains_in(data, f"{HARD} - {SOFT}", "BLEU-4", claimed=0.018)


EXPERIMENT = Experiment(
    "paper1-hard-soft",
    "Is hard attention better than soft attention if both are trained alike?",
    Options,
    no_tasks,
    conclude,
    (Claim("table 1", "Hard attention scores above soft attention in BLEU-4.", hard_wins),),
    arms,
)
