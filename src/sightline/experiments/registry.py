"""The experiments by name. Each is a module of its own, imported when it is asked for."""

import importlib

from sightline.config import nearest
from sightline.errors import ConfigError
from sightline.experiments.experiment import Experiment

# Name -> (module, the line of the list). The line lives here so that the list imports nothing.
EXPERIMENTS = {
    "explanations": (
        "sightline.experiments.explanations",
        "Which explanation method points at the right thing, and is true to the captioner?",
    ),
    "paper4-figure3": (
        "sightline.experiments.paper4_figure3",
        "How much relevance above a threshold lies on the object that a word names?",
    ),
}


def find_experiment(name: str) -> Experiment:
    """An experiment by its name; an error names the nearest one there is.

    >>> find_experiment("paper4-figure3").question
    'How much relevance above a threshold lies on the object that a word names?'
    """
    if name not in EXPERIMENTS:
        hint = nearest(name, list(EXPERIMENTS))
        raise ConfigError(f"no experiment is called '{name}'; {hint}")
    experiment: Experiment = importlib.import_module(EXPERIMENTS[name][0]).EXPERIMENT
    return experiment
