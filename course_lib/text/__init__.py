"""Raw text to batches: the micro-world, the documentation corpus, tokenizers, packing."""
