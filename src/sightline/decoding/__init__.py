"""Decoding for any captioner: greedy, beam search, sampling, constraints, ensembles."""
