"""The log: its lines, and the view that follows them."""
