"""Handles commands to a script's training, between two batches."""

from typing import Any

from accel_engine import clock
from accel_engine.events import LearningRateChanged, Phase, PhaseChanged
from accel_engine.keras_support.optimizers import set_rate
from accel_engine.recording.recorder_thread import PendingAnswer, RecorderThread
from accel_engine.run.engine.commands import Command, answered
from accel_engine.training.commands.command_mailbox import CommandMailbox

NO_CHECKPOINT = "this run is trained by a script: only the script can save checkpoints"


class FitCommandHandler:
    """Handles and answers the commands to one ``fit``.

    Args:
        mailbox: Receives the commands.
        recorder: Writes the run, and puts commands into the mailbox.

    Attributes:
        stopped: The stop command and its sender; empty before one.
        learning_rate: The last learning rate reported to the run.
    """

    def __init__(self, mailbox: CommandMailbox, recorder: RecorderThread) -> None:
        self._mailbox = mailbox
        self._recorder = recorder
        self._put = recorder.put
        self.stopped = ""
        self.learning_rate: float | None = None

    def handle(self, model: Any, step: int) -> None:
        """Handle all pending commands; during a pause this waits for the next command.

        Args:
            model: The model in training.
            step: Steps taken.
        """
        while command := self._mailbox.take():
            self._handle(command, model, step)

    def _handle(self, command: Command, model: Any, step: int) -> None:
        match command.name:
            case "stop" | "stop_now":
                self.stopped = command.origin
                model.stop_training = True
                self._answer(command, step, f"stopped after step {step:,}; the script decides what to save")
            case "pause":
                self._answer(command, step, f"paused after step {step:,}")
                self._pause(model, step)
            case "resume":
                self._answer(command, step, "the run is not paused", obeyed=False)
            case "checkpoint":
                self._answer(command, step, NO_CHECKPOINT, obeyed=False)
            case "learning_rate":
                self._set_learning_rate(command, model, step)
            case name:
                self._answer(command, step, f"this run is trained by a script: no {name} command", obeyed=False)

    def _pause(self, model: Any, step: int) -> None:
        self._put(PhaseChanged(time=clock.now(), phase=Phase.PAUSED))
        while not self.stopped:
            command = self._wait()
            if command is None:
                break
            if command.name == "resume":
                self._answer(command, step, f"resumed at step {step:,}")
                break
            if command.name == "pause":
                self._answer(command, step, "the run is already paused", obeyed=False)
            else:
                self._handle(command, model, step)
        self._put(PhaseChanged(time=clock.now(), phase=Phase.TRAINING))

    def _wait(self) -> Command | None:
        """Wait for a command; ``None`` if the recorder thread has ended, so that none can arrive."""
        while self._recorder.writing:
            self._mailbox.wait_for_next(1.0)
            if command := self._mailbox.take():
                return command
        return None

    def _set_learning_rate(self, command: Command, model: Any, step: int) -> None:
        rate = command.argument or 0.0
        if problem := set_rate(model.optimizer, rate):
            self._answer(command, step, problem, obeyed=False)
            return
        self.learning_rate = rate
        self._put(LearningRateChanged(time=clock.now(), step=step, learning_rate=rate))
        self._answer(command, step, f"learning rate {rate:g} from step {step:,}")

    def _answer(self, command: Command, step: int, answer: str, *, obeyed: bool = True) -> None:
        self._put(PendingAnswer(command, answered(command, clock.now(), step, answer, obeyed=obeyed)))
