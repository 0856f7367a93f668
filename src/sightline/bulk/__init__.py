"""Thousands of pictures: where they come from, where their captions go, and the job between."""
