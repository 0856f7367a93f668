"""Evaluation: captions of a split, their scores, measures of explanations, and tables of runs."""
