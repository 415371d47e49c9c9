"""Runs as TensorBoard's event files, without TensorFlow: of a run that has ended, and of one as it goes."""
