"""Starts the engine of a run again after it was lost: a small process beside the engine, without TensorFlow."""
