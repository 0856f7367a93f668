"""The training objectives by their names in recipes: ours, and those of plug-ins."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sightline.config import from_dict
from sightline.plugins import Registry
from sightline.training.objectives.adversarial import Adversarial, AdversarialOptions
from sightline.training.objectives.adversarial_pretraining import AdversarialPretraining
from sightline.training.objectives.aligned import Aligned, AlignedOptions
from sightline.training.objectives.cross_entropy import CrossEntropy, CrossEntropyOptions
from sightline.training.objectives.lrp_inference import LRPInference, LRPInferenceOptions
from sightline.training.objectives.objective import Objective
from sightline.training.objectives.reinforce import Reinforce, ReinforceOptions
from sightline.training.objectives.self_critical import SelfCritical, SelfCriticalOptions


@dataclass(frozen=True)
class ObjectiveEntry:
    """A training regime as the table has it, ours or a plug-in's."""

    build: Callable[[Any], Objective]  # of its options
    options: type  # a dataclass, whose fields a recipe may set
    tiny: dict[str, Any] = field(default_factory=dict)  # options that the laws are run with


OBJECTIVES = Registry(
    "objectives",
    ObjectiveEntry,
    "objective: none is called",
    {
        "cross_entropy": ObjectiveEntry(CrossEntropy, CrossEntropyOptions),
        "self_critical": ObjectiveEntry(SelfCritical, SelfCriticalOptions),
        "aligned": ObjectiveEntry(Aligned, AlignedOptions),
        "adversarial_pretraining": ObjectiveEntry(AdversarialPretraining, CrossEntropyOptions),
        "adversarial": ObjectiveEntry(Adversarial, AdversarialOptions),
        "lrp_inference": ObjectiveEntry(LRPInference, LRPInferenceOptions),
        "reinforce": ObjectiveEntry(Reinforce, ReinforceOptions),
    },
)


def list_objectives() -> list[str]:
    """Names of the training objectives.

    >>> "self_critical" in list_objectives()
    True
    """
    return OBJECTIVES.names()


def create_objective(options: dict[str, Any]) -> Objective:
    """The objective that a recipe names.

    >>> create_objective({"name": "cross_entropy", "label_smoothing": 0.1}).state()
    {}
    """
    name = str(options.get("name", "cross_entropy"))
    entry = OBJECTIVES.find(name)
    settings = {key: value for key, value in options.items() if key != "name"}
    return entry.build(from_dict(entry.options, settings, f"objective {name}"))
