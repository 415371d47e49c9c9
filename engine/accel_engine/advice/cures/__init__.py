"""Tries cures of findings, applies them, compares a run before and after, and takes them back."""
