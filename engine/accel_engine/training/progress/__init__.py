"""Decides what is due between steps: validations, checkpoints, early stopping."""
