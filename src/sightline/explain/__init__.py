"""Explain why a captioner said a word or not, over the picture and the previous words."""
