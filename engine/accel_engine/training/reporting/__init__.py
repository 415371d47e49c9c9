"""What a run records about itself: its step and phase, its model, its speed, and why it failed."""
