"""Measures the configurations of a plan on this machine side by side, and remembers what was found."""
