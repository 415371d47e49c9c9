"""Writes a folder from which a trained model is served without accel-tui, in a container, on a cluster or a device."""
