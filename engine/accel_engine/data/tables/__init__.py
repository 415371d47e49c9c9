"""Reads tables: CSV, TSV, Parquet and JSON lines."""
