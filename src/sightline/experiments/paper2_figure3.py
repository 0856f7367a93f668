"""Paper 2, figure 3: goals and attention over time in ground-truth captions (the first of each)."""

from sightline.experiments.paper2_figure4 import GROUND_TRUTH as EXPERIMENT

__all__ = ["EXPERIMENT"]
