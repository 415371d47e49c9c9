"""Trains a plan's model; imported by the engine process only.

TensorFlow is imported here and in the builders of ``models``, ``data`` and ``strategies``.
"""
