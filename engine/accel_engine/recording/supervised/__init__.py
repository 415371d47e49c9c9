"""Records a part of a script's run through its supervisor (:mod:`accel_engine.scripts`).

The supervisor is a process that survives the script.
"""

address = ""
"""Path of the supervisor's socket; empty if ``accel-tui run`` has not started this process."""
