"""The form of a plan and what stands beside it."""
