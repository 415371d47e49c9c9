"""Receives and handles a run's commands in the training thread."""
