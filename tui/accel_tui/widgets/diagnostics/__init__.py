"""Widgets of the Diagnostics screen."""
