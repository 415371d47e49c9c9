"""Trains a model in stages, each on a device, with several micro-batches of a step in flight."""
