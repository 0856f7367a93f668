"""Captions of a split, their scores, where words look, and tables of runs."""
