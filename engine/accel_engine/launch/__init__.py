"""Starts engine processes, and asks them about models, from programs that do not import TensorFlow."""
