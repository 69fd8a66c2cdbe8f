"""Sentence pairs and tokenizers: reading files and hub sets, cleaning, splitting, encoding."""
