"""Captioned pictures: readers, checks, vocabulary, batches, the region cache, synthetic scenes."""
