"""Runs a user's script as a run: ``accel-tui run``.

The supervisor (``python -m accel_engine.scripts``) is the parent of the script: it is the run's only writer, copies the
script's output to the log and to the terminal, and records how the script ends. In the script,
:mod:`accel_engine.recording.every_fit` records each ``fit``.
"""
