"""Captioners that are not ours: those of transformers, and those behind an HTTP API."""
