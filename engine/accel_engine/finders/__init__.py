"""Finds a batch size or a learning rate for a plan by measuring, without a run on disk."""
