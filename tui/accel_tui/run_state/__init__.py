"""Follows runs and folds their events into an immutable state; no widgets."""
