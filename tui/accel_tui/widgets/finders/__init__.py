"""Widgets of the Find screen, and their plots, which commands print too."""
