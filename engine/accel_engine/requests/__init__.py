"""Requests to engine processes, and their answers."""
