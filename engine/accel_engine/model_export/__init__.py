"""Exports trained models for programs that serve them, and proves that they compute what was trained."""
