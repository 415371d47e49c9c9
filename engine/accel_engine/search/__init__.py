"""Searches for the best plan: a study samples plans, each of which is trained as a run."""
