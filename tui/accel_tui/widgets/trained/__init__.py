"""Widgets of the screens that use trained models."""
