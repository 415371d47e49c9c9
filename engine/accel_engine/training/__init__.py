"""Trains a plan's model: trainer.py is where to begin; imported by the engine process only.

TensorFlow is imported here and in the builders of ``models`` and ``data``.
"""
