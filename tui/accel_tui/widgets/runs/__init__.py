"""Widgets that list and compare runs."""
