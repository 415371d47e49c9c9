"""Starts the supervisor of the recorders in a script that ``accel-tui run`` has not started.

``python -m accel_engine.scripts.recorder_supervisor PID`` prints the path of its socket. The process that
:mod:`accel_engine.recording.supervisor_address` starts ends at once, so that the supervisor is not a child of the
script.
"""

import os
import signal
import sys

from accel_engine import hangup
from accel_engine.scripts.listener import Listener


def main() -> int:
    """Write the runs of recorders as long as the script may need it; returns the exit status."""
    hangup.ignore()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the script may be saving: the supervisor ends with it
    if os.fork():
        os._exit(0)
    os.umask(0o077)

    from accel_engine.scripts.recorder_runs import RecorderRuns

    listener = Listener()
    runs = RecorderRuns(listener)
    sys.stdout.write(listener.address)
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    runs.serve(int(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
