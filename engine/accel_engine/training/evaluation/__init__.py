"""Validates models and builds evaluation reports."""
