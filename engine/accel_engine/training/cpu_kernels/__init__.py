"""Replaces Keras' layers with faster CPU kernels while a step is traced."""
