"""Tracks a run's step and phase, and writes its events."""

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from accel_engine import clock
from accel_engine.events import Event, Phase, PhaseChanged, PlanChanged
from accel_engine.plan import Plan
from accel_engine.run.engine.commands import Command, answered
from accel_engine.run.writing.writer import RunWriter

MOST_PHASES = 100_000
"""Phases that are remembered: more than a run enters while it is profiled."""


class RunReporter:
    """Step, epoch and phase of a training run; writes its events.

    Args:
        run: Writes the run.
        step: The checkpoint's step that training continues from; 0 for none.
        epochs: The completed epochs at that step, as far as is known before the position in the data is restored.
        began: When the engine started the run, by ``time.monotonic()``; now by default.

    Attributes:
        run: Writes the run.
        step: Completed steps.
        epochs: Completed epochs; 0 until the position in the data is restored.
        began: When the latest ``RunStarted`` was written, by ``time.monotonic()``.
        phase: Current phase.
        entered: The latest phases, with the nanoseconds since 1970 when each was entered; whoever looks for later ones
            may clear it.
        changes: Fields of the plan that commands have changed, with their new values.
    """

    def __init__(self, run: RunWriter, step: int, epochs: int = 0, began: float | None = None) -> None:
        self.run = run
        self.step = step
        self.epochs = epochs
        self.began = time.monotonic() if began is None else began
        self.phase = Phase.STARTING
        self.entered: deque[tuple[Phase, int]] = deque(maxlen=MOST_PHASES)
        self.changes: dict[str, Any] = {}

    def rewind(self, step: int) -> None:
        """Return to a step; the time up to now stands in the events of the start before."""
        self.run.rewind(step)
        self.began = time.monotonic()
        self.step = step

    def enter_phase(self, phase: Phase, detail: str = "") -> None:
        """Set the phase and emit ``PhaseChanged``."""
        self.phase = phase
        self.entered.append((phase, time.time_ns()))
        self.emit(PhaseChanged, phase=phase, detail=detail)

    def resume_phase(self, phase: Phase) -> None:
        """Enter a phase again, if another one has interrupted it."""
        if self.phase is not phase:
            self.enter_phase(phase)

    def answer_command(self, command: Command, *, obeyed: bool, answer: str) -> None:
        """Write the answer to a command and its event."""
        self.run.answer(command, obeyed=obeyed, answer=answer)
        self.run.write_event(answered(command, clock.now(), self.step, answer, obeyed=obeyed))

    def change_plan(self, plan: Plan, changes: Mapping[str, Any], command: Command) -> None:
        """Note that a command has changed fields of the plan, so that a continued run keeps them.

        Args:
            plan: The plan that is trained; earlier changes by commands are added to it.
            changes: The fields, with their new values.
            command: The command.
        """
        before = plan.replace(**self.changes).to_mapping()
        self.changes |= changes
        self.run.write_plan(plan.replace(**self.changes))
        self.emit(
            PlanChanged,
            step=self.step,
            changes=dict(changes),
            before={name: before[name] for name in changes},
            reason=command.reason or command.who,
            purpose=command.purpose,
        )

    def emit(self, kind: type[Event], **values: Any) -> None:
        """Write an event with these fields and the current time."""
        self.run.write_event(kind(**{"time": clock.now(), **values}))
