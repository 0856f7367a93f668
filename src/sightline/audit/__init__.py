"""Captions that others wrote: read, judged word by word, summed up."""
