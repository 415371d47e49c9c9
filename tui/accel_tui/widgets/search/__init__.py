"""Widgets of the screens of searches."""
