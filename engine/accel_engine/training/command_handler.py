"""Doing what commands ask, between two chunks."""

import math
from collections.abc import Callable

from accel_engine.events import LearningRateChanged, Phase
from accel_engine.run.commands import Command
from accel_engine.training.assembly import Assembly
from accel_engine.training.command_mailbox import CommandSource, StopRequested
from accel_engine.training.run_reporter import RunReporter
from accel_engine.training.saving import Saving


class CommandHandler:
    """Obeys the commands of one run, and answers each.

    Args:
        commands: Where they are found.
        assembly: What is trained.
        progress: Where the run stands.
        saving: What writes its checkpoints.
        validate: Tries the model on the validation data and tells whether there is any.
    """

    def __init__(
        self,
        commands: CommandSource,
        assembly: Assembly,
        progress: RunReporter,
        saving: Saving,
        validate: Callable[[], bool],
    ) -> None:
        self._commands = commands
        self._assembly = assembly
        self._progress = progress
        self._saving = saving
        self._validate = validate
        self._answer = progress.answer
        self._paused: Phase | None = None

    def obey(self) -> None:
        """Do all that was asked since the last time; a pause takes as long as it lasts.

        Raises:
            StopRequested: The run is to stop; its work is saved, unless it is to stop at once.
        """
        if self._paused is not None:
            return  # a validation during a pause is not interrupted: what is asked meanwhile is for the pause
        while command := self._commands.take():
            self._do(command)

    def _do(self, command: Command) -> None:
        progress = self._progress
        match command.name:
            case "stop" | "stop_now":
                stop = StopRequested(command)
                if progress.step and not stop.now:
                    self._saving.checkpoint()
                    self._saving.model()
                self._answer(command, obeyed=True, answer=f"stopped after step {progress.step}")
                raise stop
            case "pause" if progress.phase is Phase.PAUSED:
                self._answer(command, obeyed=False, answer="the run is paused already")
            case "pause":
                self._answer(command, obeyed=True, answer=f"paused after step {progress.step}")
                self._pause()
            case "resume":
                self._answer(command, obeyed=False, answer="the run is not paused")
            case "checkpoint" | "validate" if not progress.step:
                self._answer(command, obeyed=False, answer="no step has been taken yet")
            case "checkpoint":
                phase = progress.phase
                self._saving.checkpoint()
                progress.enter(phase)
                self._answer(command, obeyed=True, answer=f"checkpoint written at step {progress.step}")
            case "validate" if Phase.VALIDATING in (progress.phase, self._paused):
                self._answer(command, obeyed=False, answer="the run is being validated already")
            case "validate":
                phase = progress.phase
                done = self._validate()
                progress.enter(phase)
                answer = f"validated at step {progress.step}" if done else "there is nothing to validate on"
                self._answer(command, obeyed=done, answer=answer)
            case "learning_rate":
                self._set_learning_rate(command)
            case name:
                self._answer(command, obeyed=False, answer=f"this engine knows no command {name}")

    def _pause(self) -> None:
        phase = self._paused = self._progress.phase
        self._progress.enter(Phase.PAUSED)
        while (command := self._commands.wait()).name != "resume":
            self._do(command)
        self._answer(command, obeyed=True, answer=f"going on from step {self._progress.step}")
        self._paused = None
        self._progress.enter(phase)

    def _set_learning_rate(self, command: Command) -> None:
        rate = command.argument
        if rate is None or not 0 < rate < math.inf:
            self._answer(command, obeyed=False, answer="a learning rate must be a number above 0")
            return
        optimizer = self._assembly.optimizer
        if optimizer is None:
            answer = "the model's train_step has optimizers of its own, whose learning rates only it can set"
            self._answer(command, obeyed=False, answer=answer)
            return
        try:
            optimizer.learning_rate = rate
        except (AttributeError, TypeError, ValueError) as error:
            self._answer(command, obeyed=False, answer=f"the optimizer refuses it: {' '.join(str(error).split())}")
            return
        step = self._progress.step
        self._progress.say(LearningRateChanged, step=step, learning_rate=rate)
        self._answer(command, obeyed=True, answer=f"learning rate {rate:g} from step {step} on")
