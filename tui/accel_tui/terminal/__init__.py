"""Terminal output: incremental painting, flow control, and notifications."""
