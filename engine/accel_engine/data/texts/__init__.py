"""Text for language models, as tokens."""
