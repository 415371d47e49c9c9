"""Writes a run, also where its disk is full or its directory goes away."""
