"""The form of a plan, and its summary."""
