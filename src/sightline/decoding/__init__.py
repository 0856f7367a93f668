"""Words out of a captioner: greedy, beam, sampling, forced; nothing here knows which captioner."""
