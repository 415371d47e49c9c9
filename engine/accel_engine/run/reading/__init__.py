"""Reads a run: its events, steps and samples."""
