"""Captioners: regions in, words out."""
