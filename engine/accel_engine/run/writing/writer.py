"""Writes a run's events, steps, samples, diagnostics and media."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_engine import clock
from accel_engine.devices.device_types import Sample
from accel_engine.errors import DatabaseError, RunError
from accel_engine.events import Outcome, RunEnded, RunStarted, Warned
from accel_engine.json_values import encode
from accel_engine.run.directory.disk_problem import waits_for_disk
from accel_engine.run.engine.commands import Command, answered
from accel_engine.run.engine.memory_loss import log_size
from accel_engine.run.store.schema import MAX_SERIES, check_times
from accel_engine.run.store.stored_events import last_event
from accel_engine.run.writing.owned_run import OwnedRun
from accel_engine.run.writing.step_writer import pack_chunk
from accel_engine.words import numbers

if TYPE_CHECKING:  # NumPy is slow to import, and creating a run does not need it
    import numpy as np
    import numpy.typing as npt

    from accel_engine.plan import Plan
    from accel_engine.plan.memory_remedies import MemoryFacts
    from accel_engine.run.diagnostics import DiagnosticsItem
    from accel_engine.run.media import MediaItem

MAX_MEDIA_BYTES = 512 << 20
"""Most that all images, texts and histograms of a run take, compressed."""


class RunWriter(OwnedRun):
    """Writes one run. Thread-safe.

    Args:
        directory: The run's directory.
        waits: Whether writes wait for a disk that is full or broken, and repeat until it has room: all but samples,
            which are held in memory, heartbeats and media.

    Raises:
        RunError: There is no run, or it cannot be written. All methods raise it, too.
    """

    def __init__(self, directory: Path, *, waits: bool = False) -> None:
        super().__init__(directory, waits=waits)
        self._media_bytes: int | None = None
        self._has_left_out = False

    @waits_for_disk
    def write_plan(self, plan: "Plan") -> None:
        """Replace the run's plan, whose model ``auto`` is known now."""
        with self._writing():
            self._database.set_meta(plan=plan.to_json())

    @waits_for_disk
    def settle_log(self) -> None:
        """Note that what the log says so far is settled: it does not explain how the engine is lost later."""
        with self._writing():
            self._database.set_meta(log_start=log_size(self.directory))

    @waits_for_disk
    def write_memory_facts(self, facts: "MemoryFacts") -> None:
        """Write what decides how the run trains on if memory runs out, for a process that starts it again."""
        with self._writing():
            self._database.set_meta(memory=encode(facts))

    def write_values(self, values: Mapping[str, Any]) -> None:
        """Replace the known plan fields of a script's run."""
        with self._writing():
            self._database.set_meta(plan=encode(values))

    @waits_for_disk
    def write_chunk(self, first_step: int, started: float, ended: float, series: "Mapping[str, npt.ArrayLike]") -> None:
        """Add a chunk of steps. A run has at most :data:`MAX_SERIES` series: others are left out, with a warning.

        Args:
            first_step: Steps taken in the run before it; steps recorded from there on are deleted.
            started: Seconds since the Unix epoch.
            ended: Seconds since the Unix epoch.
            series: Values of each step by series name; all of one length.

        Raises:
            RunError: A run cannot have such a step or time; see :mod:`accel_engine.run.store.schema`.
        """
        check_times(started, ended)
        columns = pack_chunk(first_step, series)
        with self._writing():
            left_out = self._steps.add(self._database, first_step, started, ended, columns)
        if left_out and not self._has_left_out:  # a script may have a new name in each step
            self._has_left_out = True
            names = f"{numbers.listed(left_out)}, and others that come later"
            message = f"a run has at most {MAX_SERIES:,} series; left out from step {first_step:,} on: {names}"
            self.write_event(Warned(time=clock.now(), message=message))

    def write_samples(self, samples: Sequence[Sample]) -> None:
        """Add device samples; those that cannot be written are held in memory, and written with later ones."""
        self._unwritten_samples.add(samples)
        if self._problem:
            return
        with self._writing():
            self._unwritten_samples.insert(self._database)

    @waits_for_disk
    def write_diagnostics(self, item: "DiagnosticsItem", step: int) -> None:
        """Write diagnostics of a step in place of the last ones of their kind."""
        from accel_engine.run import diagnostics  # see above

        name, (head, body) = diagnostics.row_name(item), diagnostics.serialize(item)
        with self._writing():
            self._database.set_diagnostics(name, clock.now(), step, head, body)

    def write_media(self, step: int, time: float, name: str, item: "MediaItem") -> None:
        """Write an image, a text or a histogram, replacing the one of the same kind, name and step.

        Args:
            step: Steps taken when it was logged; items of later steps are deleted when the run continues from an
                earlier one.
            time: Seconds since the Unix epoch.
            name: At most :data:`accel_engine.run.media.MAX_NAME` bytes in UTF-8.
            item: What to write.

        Raises:
            RunError: The item, its name, or all items of the run would be larger than a run stores.
        """
        from accel_engine.run import media  # see above

        try:
            media.check_position(step, name)
            kind, head, body = media.pack_media(item)
            with self._writing():
                self._check_room(len(body))
                self._database.set_media(kind, name, int(step), time, head, body)
                self._media_bytes = (self._media_bytes or 0) + len(body)
        except ValueError as error:
            raise RunError(f"cannot log {name!r} at step {step}: {error}") from error

    def _check_room(self, size: int) -> None:
        if self._media_bytes is None or self._media_bytes + size > MAX_MEDIA_BYTES:
            self._media_bytes = self._database.media_bytes()  # items may have been deleted or replaced
        if self._media_bytes + size > MAX_MEDIA_BYTES:
            raise ValueError(
                f"the run's images, texts and histograms would take more than {numbers.size(MAX_MEDIA_BYTES)}: "
                "log smaller ones, or at fewer steps"
            )

    @waits_for_disk
    def rewind(self, step: int) -> None:
        """Continue from an earlier step than the run's start says: delete what came later, and start again."""
        with self._writing(), self._database.transaction():
            self._delete_after(step)
            if started := last_event(self._database, RunStarted):
                self._insert(replace(started, time=clock.now(), first_step=step))

    def read_steps(self, first: int, last: int) -> "tuple[dict[str, npt.NDArray[np.float32]], float]":
        """Read the series of the chunks within the steps from ``first`` up to ``last``, and their total seconds."""
        with self._writing():
            return self._steps.read(self._database, first, last)

    def commands(self) -> list[Command]:
        """Read the commands without an answer, oldest first."""
        with self._writing():
            return self._database.unanswered(Command)

    def is_withdrawn(self, command: Command) -> bool:
        """Whether the sender of a command that was read has withdrawn it since, as far as can be read."""
        try:
            with self._writing():
                return self._database.answer_to(command.id) is not None
        except RunError:
            return False

    @waits_for_disk
    def answer(self, command: Command, *, obeyed: bool, answer: str) -> None:
        """Answer a command."""
        with self._writing():
            self._database.answer(command.id, answer, obeyed=obeyed)

    def end(self, ended: RunEnded) -> None:
        """Answer pending commands, write the samples that are held and the last event, and close the run."""
        for command in self.commands():
            obeyed = command.stops and ended.outcome is Outcome.STOPPED
            answer = "stopped" if obeyed else "the run has ended"
            self.answer(command, obeyed=obeyed, answer=answer)
            self.write_event(answered(command, ended.time, ended.steps, answer, obeyed=obeyed))

        def write() -> None:
            with self._writing():
                with suppress(DatabaseError):
                    self._unwritten_samples.insert(self._database)
                with self._database.transaction():
                    if missing := self._unwritten_samples.dropped + len(self._unwritten_samples):
                        message = f"{missing:,} device samples that could not be written are missing"
                        self._insert(Warned(time=clock.now(), message=message))
                    self._insert(ended)
                self._close()

        self._repeat(write, lambda *_: None)  # nothing can be said of the wait after the last event

    @waits_for_disk
    def leave_to_new_process(self, plan: "Plan") -> None:
        """Let the run wait for the process that will replace this one, with its id; and close it."""
        with self._writing():
            pending = {"pending": clock.boot_seconds(), "kills": None, "memory_loss": None, "log_start": None}
            self._database.set_meta(plan=plan.to_json(), **pending)
            self._close()
