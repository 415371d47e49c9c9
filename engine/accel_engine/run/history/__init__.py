"""What follows from the events of a run."""
