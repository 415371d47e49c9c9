"""Records the training of a script that ``accel-tui run`` has started; the script is not changed.

``startup/sitecustomize.py`` runs before the script. :mod:`.hook` waits for the import of Keras. :mod:`.part` sends what
is recorded to the run's supervisor (:mod:`accel_engine.scripts`), a process that survives the script.
"""

address = ""
"""Path of the supervisor's socket; empty if ``accel-tui run`` has not started this process."""
