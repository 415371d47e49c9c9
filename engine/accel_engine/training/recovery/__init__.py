"""Lets a run continue after trouble: what went wrong, and with which changes it is trained on."""
