"""Experiments: one file per table or figure, each with a command, a table, a figure and data."""
