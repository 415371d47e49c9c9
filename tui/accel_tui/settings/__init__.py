"""What the user has settled for good."""
