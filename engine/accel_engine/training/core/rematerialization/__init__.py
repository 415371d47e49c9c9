"""Rematerialization (gradient checkpointing): computes parts of a model again for their gradients, to save memory."""
