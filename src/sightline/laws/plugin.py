"""All laws, on all that a plug-in has."""

from functools import partial

from sightline.adapters.loading import load_parts
from sightline.adapters.source import find_source
from sightline.encoders.registry import ENCODERS
from sightline.errors import ConfigError
from sightline.explain.methods import METHODS
from sightline.laws.adapters import check_adapter
from sightline.laws.encoders import ENCODER_LAWS, EncoderCase
from sightline.laws.explanations import EXPLAINABLE, METHOD_LAWS, MethodCase
from sightline.laws.law import Verdict, judge
from sightline.laws.models import MODEL_LAWS, ModelCase
from sightline.laws.objectives import OBJECTIVE_LAWS, ObjectiveCase
from sightline.models.registry import MODELS
from sightline.plugins import entries_of, use_plugin
from sightline.training.objectives.registry import OBJECTIVES


def check_plugin(module: str) -> list[Verdict]:
    """Run the laws on every captioner, objective, method and encoder of a plug-in's module.

    Of `hf:FOLDER`, a captioner of transformers, the laws of adapters.

    >>> check_plugin("json")
    Traceback (most recent call last):
    sightline.errors.ConfigError: plug-in json: it has no MODELS, OBJECTIVES, METHODS or ENCODERS
    """
    if (source := find_source(module)) is not None:
        if source.is_remote:
            raise ConfigError(f"{source}: laws are of captioners that can be seen into")
        return check_adapter(str(source), load_parts(source.name))
    use_plugin(module)
    verdicts: list[Verdict] = []
    for name in entries_of(module, "models"):
        variants = MODELS.find(name).tiny
        for number, options in enumerate(variants):
            subject = name if len(variants) == 1 else f"{name} ({number})"
            laws = [*MODEL_LAWS, EXPLAINABLE]
            verdicts += judge("model", subject, laws, partial(ModelCase, name, options))
    for name in entries_of(module, "objectives"):
        OBJECTIVES.find(name)
        verdicts += judge("objective", name, OBJECTIVE_LAWS, partial(ObjectiveCase, name))
    for name in entries_of(module, "methods"):
        METHODS.find(name)
        verdicts += judge("method", name, METHOD_LAWS, partial(MethodCase, name))
    for name in entries_of(module, "encoders"):
        ENCODERS.find(name)
        verdicts += judge("encoder", name, ENCODER_LAWS, partial(EncoderCase, name))
    if not verdicts:
        raise ConfigError(f"plug-in {module}: it has no MODELS, OBJECTIVES, METHODS or ENCODERS")
    return verdicts
