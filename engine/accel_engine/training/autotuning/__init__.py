"""Chooses the fastest way to execute the steps of a run, by measuring while it trains."""
