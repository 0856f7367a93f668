"""Figures of captions and of what they rest on."""
