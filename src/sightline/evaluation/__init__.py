"""Evaluation: captions of a split, their scores, localisation, and tables of runs."""
