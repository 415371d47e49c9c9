"""Describes a model: its layers, size, floating-point operations and MFU."""
