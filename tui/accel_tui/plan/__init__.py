"""A plan as people fill it in, what it would mean, and the way from it to a run; no widgets."""
