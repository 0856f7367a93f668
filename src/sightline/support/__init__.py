"""Whether the picture supports a word: scores, a classifier, and its fit."""
