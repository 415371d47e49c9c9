"""Trains a run: builds everything from the plan, feeds batches and runs the steps."""
