"""Validates models, builds evaluation reports and predicts."""
