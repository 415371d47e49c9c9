"""Terminal output: incremental painting, flow control, notifications, and faster styling."""
