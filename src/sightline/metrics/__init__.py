"""Caption metrics, equal to the field's reference tools, without Java.

Each metric is a function of raw captions, and an object to feed batch by batch; `measure` runs many
by name. Nothing here imports torch.
"""

from sightline.metrics.bleu import Bleu, bleu
from sightline.metrics.bootstrap import Difference, compare
from sightline.metrics.cider import Cider, CiderD, cider, cider_d
from sightline.metrics.corpus import Corpus, document_frequencies
from sightline.metrics.diversity import Diversity, diversity, self_cider
from sightline.metrics.frequencies import DocumentFrequencies
from sightline.metrics.report import METRICS, measure
from sightline.metrics.reward import CiderReward
from sightline.metrics.rouge import RougeL, rouge_l
from sightline.metrics.score import Metric, Score
from sightline.metrics.tokenizer import tokenize

__all__ = [
    "METRICS",
    "Bleu",
    "Cider",
    "CiderD",
    "CiderReward",
    "Corpus",
    "Difference",
    "Diversity",
    "DocumentFrequencies",
    "Metric",
    "RougeL",
    "Score",
    "bleu",
    "cider",
    "cider_d",
    "compare",
    "diversity",
    "document_frequencies",
    "measure",
    "rouge_l",
    "self_cider",
    "tokenize",
]
