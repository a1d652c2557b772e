"""The nouns: frozen records that import nothing of hangdoc but errors."""
