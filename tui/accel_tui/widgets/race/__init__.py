"""Widgets of the Race screen."""
