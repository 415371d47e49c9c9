"""Profiles the operations of a script, where a command asks for it: only if the script itself has imported TensorFlow.

Nothing of the script changes. If it starts TensorFlow's profiler itself, which has one trace at a time, this one ends.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from accel_engine import clock
from accel_engine.errors import RunError, format_error
from accel_engine.events import Phase, Warned
from accel_engine.private_names.profiler_names import profiler_module
from accel_engine.recording.run_link import RunLink
from accel_engine.run.directory.run_paths import PROFILES
from accel_engine.run.engine.commands import Command, answered

_TENSORFLOW = "tensorflow"

_CLUSTERS = ("TF_CONFIG", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE")
"""Environment variables that are set, to anything but 1, where several processes train together."""


class ScriptProfiler:
    """Traces a script for some seconds. Its methods are for one thread, except for :meth:`enter`.

    Args:
        link: Where to send answers, and what the supervisor is to reduce.
        steps: Returns the number of steps that the run has taken.
        notes: What restricts the figures of all profiles.
    """

    def __init__(self, link: RunLink, steps: Callable[[], int], notes: Sequence[str] = ()) -> None:
        self._link, self._steps, self._notes = link, steps, notes
        self._entered: list[tuple[Phase, int]] = []
        self._first_step = 0
        self._last_id = 0
        self._command: Command | None = None
        self._until = self._began = 0.0
        self._before: dict[Path, int] = {}
        self._is_tracing = False
        self._why = ""
        self._lock = threading.Lock()
        self._replaced: list[tuple[Any, Any]] = []

    def take(self, commands: Iterable[Command]) -> list[Command]:
        """Handle the commands to profile; returns the others."""
        others = []
        for command in commands:
            if command.name != "profile":
                others.append(command)
            elif command.id > self._last_id:
                self._last_id = command.id
                self._begin(command)
        return others

    def enter(self, phase: Phase) -> None:
        """Note that the script enters a phase; from any thread."""
        if self._command is None:
            self._entered = []
        self._entered.append((phase, time.time_ns()))

    def update(self) -> None:
        """End the trace if its time is over, or the script has ended it."""
        if self._command and (time.monotonic() >= self._until or not self._is_tracing):
            self.end()

    def end(self, why: str = "") -> None:
        """End the trace, if there is one, and send it; never raises an exception of the profiler.

        Args:
            why: Why it ends early, as a sentence without a full stop; empty if it does not.
        """
        entered, command, self._command = self._entered, self._command, None
        if command is None:
            return
        seconds, steps = time.monotonic() - self._began, self._steps() - self._first_step
        try:
            self._stop()
            new = dict(self._traces().items() - self._before.items())
            if not new:
                raise RunError("TensorFlow's profiler has written no trace")
            notes = [*self._notes, *(f"{reason}: the trace is shorter." for reason in (why or self._why,) if reason)]
            folder = str(max(new).relative_to(self._link.directory))
            self._link.profiled(command, folder, seconds, steps, entered, notes)
        except RunError as error:
            self._refuse(command, str(error))
        except Exception as error:  # noqa: BLE001 (whatever it is, the script continues)
            self._refuse(command, format_error(error), warns=True)

    def _begin(self, command: Command) -> None:
        from accel_engine.op_profile.options import MAX_SECONDS, MIN_SECONDS, SEVERAL_PROCESSES  # seldom needed

        seconds = command.argument or 0.0
        if self._command:
            self._refuse(command, "the run is being profiled already")
        elif _TENSORFLOW not in sys.modules:
            self._refuse(command, "the script has not imported TensorFlow, whose operations a profile shows")
        elif any(os.environ.get(name, "1") != "1" for name in _CLUSTERS):
            self._refuse(command, SEVERAL_PROCESSES)
        elif not MIN_SECONDS <= seconds <= MAX_SECONDS:
            self._refuse(command, f"a profile takes from {MIN_SECONDS:g} to {MAX_SECONDS:g} seconds")
        else:
            try:
                self._start()
            except Exception as error:  # noqa: BLE001 (as above)
                reason = f"TensorFlow's profiler does not start: {format_error(error)}"
                self._refuse(command, reason, warns=True)
                return
            self._command, self._began = command, time.monotonic()
            self._until = self._began + seconds

    def _start(self) -> None:
        profiler = sys.modules[_TENSORFLOW].profiler.experimental
        self._before, self._why = self._traces(), ""
        start = profiler.start
        with self._lock:
            start(str(self._link.directory / PROFILES))
            self._is_tracing, self._first_step = True, self._steps()
            self._replaced = [(profiler, start)]
            if private := profiler_module():
                self._replaced.append((private, private.start))

            def give_way(*arguments: Any, **options: Any) -> Any:
                """Start the script's own trace, after the end of this one."""
                with suppress(Exception):  # it would have failed without this, too, or not at all
                    self._why = "The script has started a trace itself"
                    self._stop()
                return start(*arguments, **options)

            for module, _ in self._replaced:
                module.start = give_way

    def _stop(self) -> None:
        with self._lock:
            if not self._is_tracing:
                return
            self._is_tracing = False
            for module, start in self._replaced:
                module.start = start
            self._replaced = []
            sys.modules[_TENSORFLOW].profiler.experimental.stop()

    def _traces(self) -> dict[Path, int]:
        from accel_engine.op_profile.trace_file import written_traces  # as above

        return written_traces(self._link.directory / PROFILES)

    def _refuse(self, command: Command, reason: str, *, warns: bool = False) -> None:
        if warns:
            self._link.write_event(Warned(time=clock.now(), message=f"not profiled: {reason}"))
        event = answered(command, clock.now(), self._steps(), reason, obeyed=False)
        self._link.answer(command, obeyed=False, answer=reason)
        self._link.write_event(event)
