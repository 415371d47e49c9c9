"""Traces some steps of a live run with TensorFlow's profiler, and reduces the trace to the operations that take time.

Nothing of the training changes: a trace begins and ends between two chunks. Another thread reduces it.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import tensorflow as tf

from accel_engine.errors import RunError, format_error
from accel_engine.events import Phase
from accel_engine.op_profile.options import MAX_SECONDS, MIN_SECONDS, SEVERAL_PROCESSES, check_trace_size, traced_text
from accel_engine.op_profile.reduction import TraceFacts, reduce_trace
from accel_engine.op_profile.trace_file import written_traces
from accel_engine.run.diagnostics.model_items import OpProfile
from accel_engine.run.directory.run_paths import PROFILES
from accel_engine.run.engine.commands import Command
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.model_analysis.layer_table import number_layers
from accel_engine.training.model_analysis.operation_costs import GraphCosts
from accel_engine.training.reporting.mfu import roofline
from accel_engine.training.reporting.run_reporter import RunReporter

MAX_OPERATIONS = 500_000
"""Operations that a trace may have, about: each takes some hundred bytes, and microseconds to reduce."""

FULL = f"About {MAX_OPERATIONS:,} operations ran"
"""Why a trace ends before its time."""

Graphs = Callable[[], Iterable[tf.Graph]]
"""Gives the graphs of the steps."""


class Trace:
    """A trace of this process, which begins at once.

    Args:
        directory: Where its folder is made, for XProf.

    Raises:
        RunError: TensorFlow's profiler is in use, or the directory cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._before = written_traces(directory)
        try:
            tf.profiler.experimental.start(str(directory))
        except (tf.errors.OpError, OSError) as error:
            raise RunError(f"TensorFlow's profiler does not start: {format_error(error)}") from error

    def end(self) -> Path:
        """End the trace and write its files; returns their folder.

        Raises:
            RunError: The trace cannot be written, or TensorFlow has written none.
        """
        try:
            tf.profiler.experimental.stop()
        except (tf.errors.OpError, OSError) as error:
            raise RunError(f"the trace cannot be written: {format_error(error)}") from error
        new = dict(written_traces(self._directory).items() - self._before.items())
        if not new:
            raise RunError("TensorFlow's profiler has written no trace")
        return max(new)


def reduced(
    folder: Path, directory: Path | None, assembly: Assembly, graphs: Iterable[tf.Graph], facts: TraceFacts
) -> OpProfile:
    """Reduce a trace of an assembly's steps.

    Args:
        folder: The folder of its files.
        directory: The run's directory; ``None`` if the trace is not kept.
        assembly: The model and its devices.
        graphs: The graphs of its steps.
        facts: What else is known of it.

    Raises:
        RunError: The trace is too large, has no operations, or cannot be read.
    """
    check_trace_size(folder)
    layers = {number: layer.name for layer, number in number_layers(assembly.model).items()}
    kind = "" if assembly.on_cpu else "tpu" if assembly.on_tpu else "gpu"
    path = str(folder.relative_to(directory)) if directory else ""
    known = replace(facts, layers=layers, cost_of=GraphCosts(graphs).find, accelerator=kind, path=path)
    found = reduce_trace(folder, known)
    if not found.operations:
        raise RunError("the trace has no operations: profile more seconds")
    return found


def shorter(why: str) -> str:
    """The note of a trace that ended before its time.

    Args:
        why: Why, as a sentence without a full stop.
    """
    return f"{why}: the trace is shorter."


def trace_facts(
    assembly: Assembly,
    hardware: tuple[str, ...],
    steps: int,
    notes: tuple[str, ...] = (),
    entered: tuple[tuple[Phase, int], ...] = (),
) -> TraceFacts:
    """Facts on a trace of an assembly's steps; measures a CPU's peaks unless that was done before.

    Args:
        assembly: The model and its devices; no step may run meanwhile.
        hardware: The devices' product names.
        steps: Steps in the trace.
        notes: What restricts its figures.
        entered: As in :class:`TraceFacts`.
    """
    peaks = roofline(assembly, hardware)
    return TraceFacts(
        steps=steps,
        entered=entered,
        peak_flops=peaks.flops,
        peak_source=peaks.flops_source,
        peak_bytes=peaks.bytes,
        bytes_source=peaks.bytes_source,
        notes=notes,
    )


class OpProfiler:
    """Profiles the operations of a run when a command asks for it.

    Args:
        assembly: The model and its devices.
        reporter: The run's step and phase.
        hardware: The devices' product names.
        graphs: Gives the graphs of the steps.
    """

    def __init__(self, assembly: Assembly, reporter: RunReporter, hardware: tuple[str, ...], graphs: Graphs) -> None:
        self._assembly, self._reporter, self._hardware, self._graphs = assembly, reporter, hardware, graphs
        self._command: Command | None = None
        self._trace: Trace | None = None
        self._until, self._last_step, self._first_step, self._began = 0.0, 0, 0, 0.0
        self._thread: threading.Thread | None = None

    def request(self, command: Command) -> None:
        """Take a command to profile; it is answered when the profile is written, or with the reason why not."""
        seconds = command.argument or 0.0
        if not self._assembly.single_process:
            self._refuse(command, SEVERAL_PROCESSES)
        elif self._reporter.phase is Phase.PAUSED:
            self._refuse(command, "the run is paused: it takes no steps")
        elif self._command or (self._thread and self._thread.is_alive()):
            self._refuse(command, "the run is being profiled already")
        elif not MIN_SECONDS <= seconds <= MAX_SECONDS:
            self._refuse(command, f"a profile takes from {MIN_SECONDS:g} to {MAX_SECONDS:g} seconds")
        else:
            self._command = command

    @property
    def is_due(self) -> bool:
        """Whether a trace begins or ends before the next chunk; during it, chunks are scheduled as without it."""
        if self._command is None:
            return False
        return self._trace is None or time.monotonic() >= self._until or self._reporter.step >= self._last_step

    def update(self) -> None:
        """Begin or end a trace if that is due; called between two chunks."""
        if self._command is None:
            return
        if self._trace is None:
            if self._reporter.phase is Phase.TRAINING:
                self._begin(self._command)
        elif time.monotonic() >= self._until:
            self.end()
        elif self._reporter.step >= self._last_step:
            self.end(FULL)

    def end(self, why: str = "") -> None:
        """End a trace early, if there is one.

        Args:
            why: Why it ends, as a sentence without a full stop; empty when its time is over.
        """
        command, trace = self._command, self._trace
        self._command = self._trace = None
        if command is None:
            return
        if trace is None:
            self._refuse(command, f"no step was traced: {why}")
            return
        seconds, steps = time.monotonic() - self._began, self._reporter.step - self._first_step
        entered = tuple(self._reporter.entered)
        try:
            folder = trace.end()
            if not steps:
                raise RunError(f"no step has ended within the {seconds:.1f} s of the trace{f': {why}' if why else ''}")
            notes = (shorter(why),) if why else ()
            facts = trace_facts(self._assembly, self._hardware, steps, notes, entered)
        except Exception as error:  # noqa: BLE001 (whatever it is, training continues)
            self._refuse(command, format_error(error))
            return
        graphs = list(self._graphs())
        self._thread = threading.Thread(
            target=self._reduce, args=(command, folder, graphs, facts, seconds), name="op profile", daemon=True
        )
        self._thread.start()

    def abandon(self) -> None:
        """Forget a trace without ending it, and do not wait for one that is being reduced; the process ends soon."""
        command, self._command, self._trace, self._thread = self._command, None, None, None
        if command:
            self._refuse(command, "the run was stopped immediately")

    def close(self) -> None:
        """End a trace, and wait until all profiles are written."""
        self.end("Training ended")
        if self._thread:
            self._thread.join()

    def _begin(self, command: Command) -> None:
        self._reporter.entered.clear()
        try:
            self._trace = Trace(self._reporter.run.directory / PROFILES)
        except Exception as error:  # noqa: BLE001 (as above)
            self._command = None
            self._refuse(command, format_error(error))
            return
        self._began = time.monotonic()
        self._until = self._began + (command.argument or 0.0)
        self._first_step = self._reporter.step
        self._last_step = self._first_step + max(1, MAX_OPERATIONS // max(1, len(GraphCosts(self._graphs()))))

    def _reduce(
        self, command: Command, folder: Path, graphs: list[tf.Graph], facts: TraceFacts, seconds: float
    ) -> None:
        run, step = self._reporter.run, self._first_step + (facts.steps or 0)
        try:
            profile = reduced(folder, run.directory, self._assembly, graphs, facts)
            run.write_diagnostics(profile, step)
            self._reporter.answer_command(command, obeyed=True, answer=traced_text(profile, seconds))
        except Exception as error:  # noqa: BLE001 (as above)
            self._refuse(command, f"{format_error(error)}; the trace is in {folder}")

    def _refuse(self, command: Command, reason: str) -> None:
        self._reporter.answer_command(command, obeyed=False, answer=reason)
