"""Rematerialization (gradient checkpointing): parts of a model are computed again for their gradients, to save memory."""
