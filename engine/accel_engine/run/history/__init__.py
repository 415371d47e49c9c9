"""The history of a run, from its events."""
