"""What is known of a run, and how it is followed; no widgets."""
