"""Trained models that are served on this machine: their folders, their servers and what was measured of them."""
