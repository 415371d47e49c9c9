"""The process that writes a run: whether it lives, how it was lost, and commands to it."""
