"""Saves and restores checkpoints and trained models."""
