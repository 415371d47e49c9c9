"""Trains and measures: everything of accel-tui that is not the screen."""

__version__ = "0.1.0"
