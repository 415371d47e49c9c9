"""Widgets of the Advice screen."""
