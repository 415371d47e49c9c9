"""Measures the ways to run a plan on this machine side by side, and remembers what was found."""
