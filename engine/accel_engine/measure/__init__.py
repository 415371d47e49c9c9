"""Measures plans side by side: each in a process, in turns."""
