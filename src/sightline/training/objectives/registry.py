"""The training regimes by the names that recipes call them."""

from typing import Any

from sightline.config import from_dict, nearest
from sightline.errors import ConfigError
from sightline.training.objectives.adversarial import Adversarial, AdversarialOptions
from sightline.training.objectives.adversarial_pretraining import AdversarialPretraining
from sightline.training.objectives.aligned import Aligned, AlignedOptions
from sightline.training.objectives.cross_entropy import CrossEntropy, CrossEntropyOptions
from sightline.training.objectives.lrp_inference import LRPInference, LRPInferenceOptions
from sightline.training.objectives.objective import Objective
from sightline.training.objectives.reinforce import Reinforce, ReinforceOptions
from sightline.training.objectives.self_critical import SelfCritical, SelfCriticalOptions

_OBJECTIVES: dict[str, tuple[Any, type]] = {  # name -> class, class of its options
    "cross_entropy": (CrossEntropy, CrossEntropyOptions),
    "self_critical": (SelfCritical, SelfCriticalOptions),
    "aligned": (Aligned, AlignedOptions),
    "adversarial_pretraining": (AdversarialPretraining, CrossEntropyOptions),
    "adversarial": (Adversarial, AdversarialOptions),
    "lrp_inference": (LRPInference, LRPInferenceOptions),
    "reinforce": (Reinforce, ReinforceOptions),
}


def list_objectives() -> list[str]:
    """Names of the training regimes.

    >>> "self_critical" in list_objectives()
    True
    """
    return list(_OBJECTIVES)


def create_objective(options: dict[str, Any]) -> Objective:
    """The objective that a recipe names.

    >>> create_objective({"name": "cross_entropy", "label_smoothing": 0.1}).state()
    {}
    """
    name = str(options.get("name", "cross_entropy"))
    if name not in _OBJECTIVES:
        raise ConfigError(f"objective: none is called '{name}'; {nearest(name, list_objectives())}")
    build, kind = _OBJECTIVES[name]
    others = {key: value for key, value in options.items() if key != "name"}
    objective: Objective = build(from_dict(kind, others, f"objective {name}"))
    return objective
