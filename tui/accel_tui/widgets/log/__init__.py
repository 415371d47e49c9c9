"""Widgets of the engine's log."""
