"""The supervisor of a script: ``python -m accel_engine.scripts --run DIRECTORY [OPTIONS] -- ARGUMENTS``.

``python`` takes the same ARGUMENTS. :mod:`accel_engine.scripts.start_script` starts it, leading its own session.
"""

import argparse
import os
import socket
import sys
from pathlib import Path

from accel_engine import hangup
from accel_engine.scripts.listener import Listener
from accel_engine.scripts.script_process import ScriptProcess, open_streams, script_environment


def main() -> int:
    """Run the script; returns the supervisor's exit status."""
    hangup.survive()
    parser = argparse.ArgumentParser(prog="python -m accel_engine.scripts", description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="directory of the run")
    parser.add_argument("--attach", type=int, metavar="FD", help="socket of the command in the foreground")
    parser.add_argument(
        "--parse", action="append", default=[], metavar="PATTERN", help="pattern of values in the output"
    )
    parser.add_argument("arguments", nargs="+", help="arguments of python")
    options = parser.parse_args()
    connection = None
    if options.attach is not None:
        connection = socket.socket(fileno=options.attach)
        connection.set_inheritable(False)
    # The script starts before the modules that write its run are imported: it does not wait for them.
    streams, listener = open_streams(), Listener()
    script = ScriptProcess(options.arguments, script_environment(listener.address), streams)
    _leave_streams(options.run)

    from accel_engine.scripts.attached_terminal import AttachedTerminal
    from accel_engine.scripts.supervisor import ScriptSupervisor

    attached = AttachedTerminal(connection) if connection else None
    if attached:
        attached.send({"started": True})
    ScriptSupervisor(options.run, script, streams, listener, options.parse, attached).run()
    return 0


def _leave_streams(run: Path) -> None:
    """Let go of the user's terminal and pipes; errors of this process go to the log."""
    from accel_engine.files import open_log
    from accel_engine.run.directory.run_paths import LOG

    null = os.open(os.devnull, os.O_RDONLY)
    log = open_log(run / LOG)
    for descriptor, file in ((0, null), (1, log), (2, log)):
        os.dup2(file, descriptor)
    os.close(null)
    os.close(log)


if __name__ == "__main__":
    sys.exit(main())
