"""Runs in the forms that other programs read: CSV, JSON, Parquet; TensorBoard's has a package of its own."""
