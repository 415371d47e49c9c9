"""Trains a plan's model in the engine process; trainer.py is where to begin."""
