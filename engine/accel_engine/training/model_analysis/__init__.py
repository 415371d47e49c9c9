"""Describes a model: its layers, size and floating-point operations."""
