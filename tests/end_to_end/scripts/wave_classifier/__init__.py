"""A classifier of waves as a package: ``python -m wave_classifier``."""
