"""The files of a run's directory: their names, the checkpoints, the log, the writer's lock; and errors of the disk."""
