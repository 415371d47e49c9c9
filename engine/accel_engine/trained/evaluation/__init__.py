"""Evaluates trained models: metrics with intervals, the scores of classes, and what was measured."""
