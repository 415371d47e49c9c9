"""Exports runs to CSV, JSON and Parquet; see :mod:`accel_engine.tensorboard` for TensorBoard."""
