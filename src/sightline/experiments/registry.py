"""The experiments by name. Each is a module of its own, imported when it is asked for."""

import importlib

from sightline.config import nearest
from sightline.errors import ConfigError
from sightline.experiments.experiment import Experiment

# Name -> (module, the line of the list). The line lives here so that the list imports nothing.
EXPERIMENTS = {
    "audit": (
        "sightline.experiments.audit",
        "Does the audit find words that were swapped, and spare those that people wrote?",
    ),
    "avoid-unsupported": (
        "sightline.experiments.avoid_unsupported",
        "Are captions that avoid unsupported words worse than others?",
    ),
    "captioners": (
        "sightline.experiments.captioners",
        "What do captioners score that are trained alike?",
    ),
    "explanations": (
        "sightline.experiments.explanations",
        "Which explanation method points at the right thing, and is true to the captioner?",
    ),
    "fine-tuning": (
        "sightline.experiments.fine_tuning",
        "Do captions name more that is not there after fine-tuning than before?",
    ),
    "paper0-figure1": (
        "sightline.experiments.paper0_figure1",
        "Which region does each word look at most, before and after alignment?",
    ),
    "paper0-figure2": (
        "sightline.experiments.paper0_figure2",
        "Do attention, aligned attention and masks agree with gradient importance?",
    ),
    "paper0-figure4": (
        "sightline.experiments.paper0_figure4",
        "How much masking is best: CIDEr and the mean mask by λ?",
    ),
    "paper0-figure6": (
        "sightline.experiments.paper0_figure6",
        "In which layers does alignment change attention?",
    ),
    "paper0-figure7": (
        "sightline.experiments.paper0_figure7",
        "How do the captions of runs differ, picture by picture?",
    ),
    "paper0-table1": (
        "sightline.experiments.paper0_table1",
        "What do captioners score in the metrics of COCO, SPICE among them?",
    ),
    "paper0-table2": (
        "sightline.experiments.paper0_table2",
        "What does an ensemble of runs score, and what would it send to a test server?",
    ),
    "paper0-table3": (
        "sightline.experiments.paper0_table3",
        "Which way to fuse masks and attention captions best?",
    ),
    "paper0-table4": (
        "sightline.experiments.paper0_table4",
        "Which of two captioners do people prefer, in a blind comparison, and do they agree?",
    ),
    "paper1-figure2": (
        "sightline.experiments.paper1_figure2",
        "What do soft and hard attention look at, word by word?",
    ),
    "paper1-figure5": (
        "sightline.experiments.paper1_figure5",
        "Where did the captioner look when it said a wrong word?",
    ),
    "paper1-hard-soft": (
        "sightline.experiments.paper1_hard_soft",
        "Is hard attention better than soft attention if both are trained alike?",
    ),
    "paper1-table1": (
        "sightline.experiments.paper1_table1",
        "What do captioners score in BLEU, with and without its brevity penalty?",
    ),
    "paper2-adversarial": (
        "sightline.experiments.paper2_adversarial",
        "Does adversarial training help more than training on for as long?",
    ),
    "paper2-figure3": (
        "sightline.experiments.paper2_figure3",
        "Do goals and attention change together in captions that people wrote?",
    ),
    "paper2-figure4": (
        "sightline.experiments.paper2_figure4",
        "Do goals and attention change together in captions that are generated?",
    ),
    "paper3-figure2": (
        "sightline.experiments.paper3_figure2",
        "Where do the heads of a Transformer look, in its encoder and from word to word?",
    ),
    "paper3-table1": (
        "sightline.experiments.paper3_table1",
        "Does spatial self-attention caption as well as soft attention, and does d_len help?",
    ),
    "paper3-time": (
        "sightline.experiments.paper3_time",
        "How long does spatial self-attention train until it captions as well as soft attention?",
    ),
    "paper4-figure3": (
        "sightline.experiments.paper4_figure3",
        "How much relevance above a threshold lies on the object that a word names?",
    ),
    "paper4-figure4": (
        "sightline.experiments.paper4_figure4",
        "What do LRP, Grad-CAM and attention show of words that are made up?",
    ),
    "paper4-figure5": (
        "sightline.experiments.paper4_figure5",
        "Is the evidence for made-up words negative?",
    ),
    "paper4-table1": (
        "sightline.experiments.paper4_table1",
        "What do captioners score in BERTScore with idf weights, and in four other metrics?",
    ),
    "paper4-table2": (
        "sightline.experiments.paper4_table2",
        "Is a word less likely without the previous words that an explanation names?",
    ),
    "paper4-table3": (
        "sightline.experiments.paper4_table3",
        "Do explanations tell hallucinated words from right ones?",
    ),
    "paper4-table4": (
        "sightline.experiments.paper4_table4",
        "What does LRP-inference change that as many steps of cross-entropy do not?",
    ),
    "paper4-table5": (
        "sightline.experiments.paper4_table5",
        "How often are the objects that captions name really there?",
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
