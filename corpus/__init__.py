"""Where pairs come from: files and hub sets, cleaning, splitting, tokenizers."""
