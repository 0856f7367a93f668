"""Captioned pictures: readers, validator, statistics, batches, boxes, synthetic scenes."""
