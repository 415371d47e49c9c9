"""Searches for the best plan: a study samples plans, trains each as a run of its own, and keeps what was found."""
