"""Predicts examples that are not part of a run's data, and lets language models write."""
