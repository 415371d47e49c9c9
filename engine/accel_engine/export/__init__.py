"""Exports the tables of runs."""

FORMATS = ("csv", "json", "parquet", "tensorboard")
"""Formats of tables."""

TABLES = ("steps", "validation", "samples", "events")
"""Tables of a run; ``run_tables.py`` reads them."""
