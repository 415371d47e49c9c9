"""Predicts examples that are no part of a run's data, and lets language models write."""
