"""What follows from a run's progress: validations, checkpoints, early stopping."""
