"""Reads what other tools recorded, and writes it as runs: TensorBoard's event files, W&B's offline runs, CSV files."""
