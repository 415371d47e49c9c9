"""Builds the report of a validation, in a form that fits the task."""
