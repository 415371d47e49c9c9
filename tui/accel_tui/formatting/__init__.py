"""Formats amounts, names and states for the screen and the command line."""
