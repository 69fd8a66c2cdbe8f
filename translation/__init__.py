"""Decoding, the translator and its options, metrics, attention pictures, the CTranslate2 engine."""
