"""What is said of one run."""
