"""Paper 4, table 4: LRP-inference fine-tuning against as many steps of cross-entropy.

The control starts from the same weights and sees the same captions in the same order: its λ is 1.
With `start` both tune a captioner that is there already, and seeds are of the order of the data.

BERTScore with idf weights is not among the metrics here, but in `paper4-table1`, which takes the
runs that this leaves: its model and layer are options there.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
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
    # A run or checkpoint to tune instead, or "bundled"; `recipe` is then RUN/recipe.yaml, or any of
    # its model and encoder.
    start: str | None = None
    form: str = "logit"  # equations 10 and 11
    likelihood: float = 0.5  # λ of equation 12
    learning_rate: float = 1e-6
    steps: int = 320
    batch: int = 32
    metrics: tuple[str, ...] = ("bleu", "rouge-l", "cider-d", "chair")


def arms(options: Options) -> Sequence[Arm]:
    tuned: tuple[str, ...] = (
        "then=[]",
        f"optimizer={{name: adam, learning_rate: {options.learning_rate}, weight_decay: 0.0}}",
        "schedule={name: constant, warmup: 0}",
        f"batch={{by: length, size: {options.batch}}}",
        f"steps={options.steps}",
    )
    objective = "objective={{name: lrp_inference, form: {}, likelihood: {}}}".format
    if options.start is None:
        before = Arm(BEFORE, options.recipe, ("then=[]",), options.seeds)
    else:
        start = f"start_from={json.dumps(options.start)}"
        tuned = (*tuned, start)
        before = Arm(BEFORE, options.recipe, ("then=[]", start), 1, trains=False)
    return [
        before,
        *(
            Arm(
                name,
                options.recipe,
                (*tuned, objective(options.form, likelihood)),
                options.seeds,
                after=None if options.start else BEFORE,
            )
            for name, likelihood in ((CONTROL, 1.0), (TREATED, options.likelihood))
        ),
    ]


def conclude(records: Sequence[Record], options: Options) -> Findings:
    pairs = [(TREATED, CONTROL)]
    if options.start is None:  # else there is one captioner before, and no seed to pair it by
        pairs = [(CONTROL, BEFORE), (TREATED, BEFORE), *pairs]
    return compare_arms(records, pairs)


def maintains(data: dict[str, Any]) -> Answer:
    """Not below the control by half a point or more."""
    gain = Estimate.from_json(data["gains"][f"{TREATED} - {CONTROL}"]["CIDEr-D"])
    points = gain.show(100, sign="+")
    sentence = f"{points} points of CIDEr-D against the control, {gain.count} seeds."
    return tell([gain.shifted(0.005)], sentence)


EXPERIMENT = Experiment(
    "paper4-table4",
    "What does LRP-inference change that as many steps of cross-entropy do not?",
    Options,
    no_tasks,
    conclude,
    (Claim("table 4", "LRP-inference maintains the scores.", maintains),),
    arms,
)
