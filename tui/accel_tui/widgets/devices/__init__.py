"""Widgets that show device metrics."""
