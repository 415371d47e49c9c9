"""Measures execution modes and chooses the fastest."""
