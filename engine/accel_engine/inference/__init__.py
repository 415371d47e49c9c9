"""Runs trained models: in each runtime that serves them, to predict, to prove exports and to measure."""
