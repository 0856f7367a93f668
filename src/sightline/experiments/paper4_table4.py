"""Paper 4, table 4: LRP-inference fine-tuning against as many steps of cross-entropy.

The control starts from the same weights and sees the same captions in the same order: its λ is 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sightline.experiments.arms_table import compare_arms
from sightline.experiments.claims import Answer, Claim, tell
from sightline.experiments.estimate import Estimate
from sightline.experiments.experiment import Arm, Experiment, Findings, Record, no_tasks
from sightline.experiments.training_tasks import TrainingOptions

BEFORE, CONTROL, TREATED = "before", "control", "lrp-inference"


@dataclass(frozen=True)
class Options(TrainingOptions):
    """The paper's protocol: rate 1e-6, batches of 32, 320 steps on Flickr30k and 500 on COCO."""

    recipe: str = "scenes/biased_adaptive_attention"  # its first phase is what is fine-tuned
    form: str = "logit"  # equations 10 and 11
    likelihood: float = 0.5  # λ of equation 12
    learning_rate: float = 1e-6
    steps: int = 320
    batch: int = 32
    metrics: tuple[str, ...] = ("bleu", "rouge-l", "cider-d", "chair")


def arms(options: Options) -> Sequence[Arm]:
    tuned = (
        "then=[]",
        f"optimizer={{name: adam, learning_rate: {options.learning_rate}, weight_decay: 0.0}}",
        "schedule={name: constant, warmup: 0}",
        f"batch={{by: length, size: {options.batch}}}",
        f"steps={options.steps}",
    )
    objective = "objective={{name: lrp_inference, form: {}, likelihood: {}}}".format
    return [
        Arm(BEFORE, options.recipe, ("then=[]",), options.seeds),
        *(
            Arm(
                name,
                options.recipe,
                (*tuned, objective(options.form, likelihood)),
                options.seeds,
                after=BEFORE,
            )
            for name, likelihood in ((CONTROL, 1.0), (TREATED, options.likelihood))
        ),
    ]


def conclude(records: Sequence[Record], options: Options) -> Findings:
    pairs = [(CONTROL, BEFORE), (TREATED, BEFORE), (TREATED, CONTROL)]
    return compare_arms(records, pairs)


def maintains(data: dict[str, Any]) -> Answer:
    """Not below the control by half a point or more."""
    gain = Estimate.from_json(data["gains"][f"{TREATED} - {CONTROL}"]["CIDEr-D"])
    points = gain.show(100, sign="+")
    sentence = f"{points} points of CIDEr-D against the control, {gain.count} seeds."
    return tell([replace(gain, low=gain.low + 0.005, high=gain.high + 0.005)], sentence)


def hallucinates_less(data: dict[str, Any]) -> Answer:
    gain = Estimate.from_json(data["gains"][f"{TREATED} - {CONTROL}"]["wrong words"])
    sentence = (
        f"{gain.show(100, sign='+')} points of content words that no reference says, against "
        f"the control, {gain.count} seeds."
    )
    return tell([-gain], sentence)


EXPERIMENT = Experiment(
    "paper4-table4",
    "What does LRP-inference change that as many steps of cross-entropy do not?",
    Options,
    no_tasks,
    conclude,
    (
        Claim("table 4", "LRP-inference maintains the scores.", maintains),
        Claim("table 5", "Captioners tuned by LRP-inference hallucinate less.", hallucinates_less),
    ),
    arms,
)
