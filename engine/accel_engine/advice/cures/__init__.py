"""Tries a cure of a finding, and applies it or takes it back."""
