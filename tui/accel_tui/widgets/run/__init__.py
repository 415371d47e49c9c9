"""Widgets that show one run."""
