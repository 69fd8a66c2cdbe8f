"""The built-in corpus: lexicon, morphology, sentences."""
