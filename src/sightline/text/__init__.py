"""The text of captions: tokens, vocabulary, stems, stop words, WordNet."""
