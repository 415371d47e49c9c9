"""``python -m accel_engine.places start|end|kill|answer|run RUN [PLAN]``: what a place's engine runs on its machines.

``start`` becomes the engine of the run, or of one of its other workers, as the environment says. ``end`` says by its
exit status whether the run is to be started again: 75 if it is. With a plan file, the first process makes the run,
and RUN is the link to it. ``kill`` ends the run's engines on this machine; ``answer`` prints what the machine has.
``run HOME WORDS`` runs a command of the program with that directory, and interrupts it for each byte of its own input
and at its end; a command that shows a search is then killed, and the search continues.
"""

import os
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext, suppress
from pathlib import Path

from accel_engine.errors import AccelError
from accel_engine.files import open_log
from accel_engine.json_values import encode
from accel_engine.keep_alive.restart import STARTED_BY_PLACE
from accel_engine.places.own_process import AGAIN, end_processes, is_to_start_again, judged, own_directory, restart_of
from accel_engine.places.ssh_hosts import answer
from accel_engine.run.directory.run_paths import LOG, WORKERS

USAGE = 2

SHOWS = "ACCEL_TUI_SHOWS"
"""Environment variable of processes that print the run's progress."""

WATCH_SECONDS = 10.0
"""How long the end of a run may take to be printed."""


def main() -> int:
    """Start the engine, or judge how it ended; returns the exit status."""
    os.umask(0o077)
    action, directory = sys.argv[1] if sys.argv[1:] else "", Path(sys.argv[2]) if sys.argv[2:] else Path()
    if action == "run" and len(sys.argv) > 3:
        return _run(directory, sys.argv[3:])
    if action not in ("start", "end", "kill", "answer") or not 3 <= len(sys.argv) <= 4:
        print(__doc__, file=sys.stderr)  # noqa: T201 (a person has started it)
        return USAGE
    try:
        if action == "answer":
            print(encode(answer(directory if sys.argv[2] else None)))  # noqa: T201 (this is read by a program)
            return 0
        if action == "kill":
            end_processes(directory)
            return 0
        if action == "end":
            return AGAIN if is_to_start_again(directory) else 0
        own = own_directory(directory, Path(sys.argv[3]) if sys.argv[3:] else None)
        restart = restart_of(directory.resolve()) if own else None
    except AccelError as error:
        print(f"accel-tui: {error}", file=sys.stderr)  # noqa: T201 (this is the log of the place's engine)
        return error.exit_status
    if own is None:
        return judged(directory.resolve())
    os.environ.setdefault(STARTED_BY_PLACE, "job")
    os.environ.update(restart.environment if restart else {})
    command = [sys.executable, "-m", "accel_engine.process", "--run", str(own)]
    log = open_log(own / LOG)
    if SHOWS in os.environ:
        return _show(command, own, log)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.execv(command[0], command)  # noqa: S606
    return 0


def _run(home: Path, words: list[str]) -> int:
    """Run a command of the program until its end, or the end of the input; returns its exit status."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"} | {
        "ACCEL_TUI_HOME": str(home)
    }
    command = [sys.executable, "-P", "-m", "accel_tui", *words]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)

    def watch() -> None:
        while os.read(0, 1):  # not of sys.stdin, whose lock it would hold when this process exits
            process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGKILL if words[0] == "search" else signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
    return process.wait()


def _show(command: list[str], own: Path, log: int) -> int:
    """Run the engine, and print its progress meanwhile, for a place that shows only what its processes print.

    Returns:
        The exit status: :data:`AGAIN` for a run that is to be started again, and of all workers but the chief that have
        failed, as the chief decides.
    """
    is_first = own.parent.name != WORKERS
    engine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: engine.send_signal(received))
    watch = [sys.executable, "-m", "accel_tui", "watch", str(own), "--plain"]
    with subprocess.Popen(watch, start_new_session=True) if is_first else nullcontext() as watcher:
        status = engine.wait()
        if watcher:
            with suppress(subprocess.TimeoutExpired):
                watcher.wait(WATCH_SECONDS)
            watcher.terminate()
    if not is_first:
        return AGAIN if status else 0
    return AGAIN if is_to_start_again(own) else judged(own)


if __name__ == "__main__":
    sys.exit(main())
