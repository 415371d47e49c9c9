"""Handles a run's commands between two chunks."""

import time
from collections.abc import Callable

from accel_engine.events import LearningRateChanged, Phase
from accel_engine.keras_support.optimizers import schedule_name, set_rate
from accel_engine.run.engine.commands import Command
from accel_engine.training.checkpoints.run_saver import RunSaver
from accel_engine.training.commands.command_mailbox import CommandSource, StopRequested
from accel_engine.training.core.assembly import Assembly
from accel_engine.training.reporting.op_profiler import OpProfiler
from accel_engine.training.reporting.run_reporter import RunReporter


class CommandHandler:
    """Executes the commands of one run and answers each.

    Args:
        commands: Source of commands.
        assembly: Model, data and strategy.
        reporter: The run's step and phase.
        saver: Writes checkpoints and the model.
        validate: Validates the model; returns why that is impossible, empty if it is not.
        change_interval: Changes the steps between validations or checkpoints, by the name of the plan's field; returns
            why that is impossible, empty if it is not.
        profiler: Profiles operations.
    """

    def __init__(
        self,
        commands: CommandSource,
        assembly: Assembly,
        reporter: RunReporter,
        saver: RunSaver,
        validate: Callable[[], str],
        change_interval: Callable[[str, int], str],
        profiler: OpProfiler,
    ) -> None:
        self._commands = commands
        self._assembly = assembly
        self._reporter = reporter
        self._saver = saver
        self._validate = validate
        self._change_interval = change_interval
        self._profiler = profiler
        self._answer = reporter.answer_command
        self._paused: Phase | None = None
        self._pause_id = 0
        self._pause_end: float | None = None

    def handle(self) -> None:
        """Execute all pending commands; blocks while the run is paused.

        Raises:
            StopRequested: On ``stop``, after saving, and on ``stop_now``.
        """
        if self._paused is not None:
            return  # called by a validation during a pause: _pause handles the commands
        while command := self._commands.take():
            self._execute(command)
        self._profiler.update()

    def _execute(self, command: Command) -> None:
        reporter = self._reporter
        if not self._commands.is_shared and reporter.run.is_withdrawn(command):
            return
        match command.name:
            case "stop" | "stop_now":
                stop = StopRequested(command)
                if reporter.step and not stop.now:
                    self._saver.save_checkpoint()
                    self._saver.save_model()
                self._answer(command, obeyed=True, answer=f"stopped after step {reporter.step:,}")
                raise stop
            case "pause" if reporter.phase is Phase.PAUSED:
                self._pause_longer(command)
            case "pause":
                longest = command.argument or 0.0
                limit = f" for at most {longest:.0f} s" if longest else ""
                self._answer(command, obeyed=True, answer=f"paused after step {reporter.step:,}{limit}")
                self._pause(command.id, longest)
            case "resume":
                self._answer(command, obeyed=False, answer="the run is not paused")
            case "checkpoint" | "validate" if not reporter.step:
                self._answer(command, obeyed=False, answer="no step has completed yet")
            case "checkpoint":
                phase = reporter.phase
                problem = self._saver.save_checkpoint()
                reporter.enter_phase(phase)
                self._answer(
                    command, obeyed=not problem, answer=problem or f"checkpoint written at step {reporter.step:,}"
                )
            case "validate" if Phase.VALIDATING in (reporter.phase, self._paused):
                self._answer(command, obeyed=False, answer="a validation is already running")
            case "validate":
                phase = reporter.phase
                problem = self._validate()
                reporter.enter_phase(phase)
                self._answer(command, obeyed=not problem, answer=problem or f"validated at step {reporter.step:,}")
            case "profile":
                self._profiler.request(command)
            case "learning_rate":
                self._set_learning_rate(command)
            case "validation_every" | "checkpoint_every":
                self._set_interval(command)
            case name:
                self._answer(command, obeyed=False, answer=f"unknown command {name}")

    def _pause(self, command_id: int, longest: float) -> None:
        """Pause until a command resumes the run, or for ``longest`` seconds; 0 for any time."""
        self._profiler.end("The run was paused")
        phase = self._paused = self._reporter.phase
        self._reporter.enter_phase(Phase.PAUSED)
        self._pause_id, self._pause_end = command_id, time.monotonic() + longest if longest else None
        while (command := self._next_command(self._pause_end)) is not None:
            if command.name != "resume":
                self._execute(command)
            elif command.argument in (None, self._pause_id):
                self._answer(command, obeyed=True, answer=f"resumed at step {self._reporter.step:,}")
                break
            else:
                self._answer(command, obeyed=False, answer="somebody else has paused the run")
        self._paused = None
        self._reporter.enter_phase(phase)

    def _pause_longer(self, command: Command) -> None:
        """Make a pause for some seconds one for any time, which only its own sender, or a user, ends."""
        if self._pause_end is None or command.argument:
            self._answer(command, obeyed=False, answer="the run is already paused")
            return
        self._pause_id, self._pause_end = command.id, None
        self._answer(command, obeyed=True, answer=f"paused after step {self._reporter.step:,}")

    def _next_command(self, end: float | None) -> Command | None:
        """Wait for a command until a time by ``time.monotonic()``; ``None`` if there is none until then."""
        if end is None:
            return self._commands.wait()
        return self._commands.wait_at_most(max(0.0, end - time.monotonic()))

    def _set_interval(self, command: Command) -> None:
        steps = int(command.argument or 0)
        if problem := self._change_interval(command.name, steps):
            self._answer(command, obeyed=False, answer=problem)
            return
        self._reporter.change_plan(self._assembly.plan, {command.name: f"{steps} steps"}, command)
        what = "validation" if command.name == "validation_every" else "checkpoint"
        self._answer(command, obeyed=True, answer=f"{what} every {steps:,} steps, from step {self._reporter.step:,}")

    def _set_learning_rate(self, command: Command) -> None:
        optimizer, rate, step = self._assembly.optimizer, command.argument or 0.0, self._reporter.step
        problem = "the model's custom train_step has several optimizers, whose learning rates only it can set"
        if optimizer is not None:
            schedule = schedule_name(optimizer)
            fixed = f"it follows a schedule ({schedule}), and can only be set without one"
            problem = fixed if schedule else set_rate(optimizer, rate)
        if problem:
            self._answer(command, obeyed=False, answer=problem)
            return
        self._reporter.emit(LearningRateChanged, step=step, learning_rate=rate)
        self._answer(command, obeyed=True, answer=f"learning rate set to {rate:g} from step {step:,}")
