"""The machine's devices."""
