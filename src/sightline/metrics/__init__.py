"""Caption metrics, equal to the field's reference tools, without Java.

Each metric is a function of raw captions, and an object to feed batch by batch; `score` runs many
by name. Nothing here imports torch, spaCy or transformers before a metric that needs it is called.

Functions hide the modules that have their names (`bleu`, `chair`, `meteor` ...); what else is in
these is imported as `from sightline.metrics.chair import objects_named`.
"""

from sightline.metrics.bertscore import BertScore, bertscore
from sightline.metrics.bleu import Bleu, bleu
from sightline.metrics.bootstrap import Difference, compare, interval
from sightline.metrics.chair import Chair, ObjectsNamed, chair, objects_named
from sightline.metrics.cider import Cider, CiderD, cider, cider_d
from sightline.metrics.clipscore import clipscore
from sightline.metrics.corpus import Corpus, document_frequencies
from sightline.metrics.diversity import Diversity, diversity, self_cider
from sightline.metrics.frequencies import DocumentFrequencies
from sightline.metrics.meteor.scorer import Meteor, meteor
from sightline.metrics.reward import CiderReward
from sightline.metrics.rouge import RougeL, rouge_l
from sightline.metrics.score import Metric, Score
from sightline.metrics.scoring import METRICS, score
from sightline.metrics.spice.official import spice
from sightline.metrics.spice.spacy_parser import SpiceSpacy, spice_spacy
from sightline.text.tokenizer import tokenize

__all__ = [
    "METRICS",
    "BertScore",
    "Bleu",
    "Chair",
    "Cider",
    "CiderD",
    "CiderReward",
    "Corpus",
    "Difference",
    "Diversity",
    "DocumentFrequencies",
    "Meteor",
    "Metric",
    "ObjectsNamed",
    "RougeL",
    "Score",
    "SpiceSpacy",
    "bertscore",
    "bleu",
    "chair",
    "cider",
    "cider_d",
    "clipscore",
    "compare",
    "diversity",
    "document_frequencies",
    "interval",
    "meteor",
    "objects_named",
    "rouge_l",
    "score",
    "self_cider",
    "spice",
    "spice_spacy",
    "tokenize",
]
