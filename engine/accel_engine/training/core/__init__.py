"""Builds everything for a plan, feeds batches and runs the steps."""
