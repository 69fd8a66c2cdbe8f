"""Decoding, the translator, what attention looks at, the CTranslate2 engine, metrics."""
