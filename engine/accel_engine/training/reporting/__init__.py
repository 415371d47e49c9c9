"""Records facts of a run: its step and phase, its model, its speed, and why it failed."""
