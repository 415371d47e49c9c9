"""Doing what commands ask of a script's training, between two batches."""

import math
from typing import Any

from accel_engine import clock
from accel_engine.errors import RunError
from accel_engine.events import CommandAnswered, LearningRateChanged, Phase, PhaseChanged
from accel_engine.recording.error_guard import describe
from accel_engine.recording.recorder_thread import RecorderThread
from accel_engine.recording.write_queue import CommandReply
from accel_engine.run.commands import Command
from accel_engine.training.command_mailbox import CommandMailbox

UNHEARD_WAITS = 120
"""Seconds of a pause in which the recording thread reads no command, after which training goes on by itself."""

NO_CHECKPOINT = "a script trains this run: it alone can write a checkpoint"


class FitCommandHandler:
    """Obeys the commands of one ``fit``, and answers each.

    Args:
        mailbox: Where they arrive.
        scribe: Writes the run, and puts commands into the mailbox.

    Attributes:
        stopped: Who asked to stop; empty while nobody did.
        learning_rate: What the run knows of as such.
    """

    def __init__(self, mailbox: CommandMailbox, scribe: RecorderThread) -> None:
        self._mailbox = mailbox
        self._scribe = scribe
        self._tell = scribe.tell
        self.stopped = ""
        self.learning_rate: float | None = None

    def obey(self, model: Any, step: int) -> None:
        """Do all that was asked since the last time; a pause takes as long as it lasts.

        Args:
            model: In training.
            step: Steps taken.
        """
        while command := self._mailbox.take():
            self._do(command, model, step)

    def _do(self, command: Command, model: Any, step: int) -> None:
        match command.name:
            case "stop" | "stop_now":
                self.stopped = command.origin
                model.stop_training = True
                self._answer(command, step, f"stopped after step {step}; what is kept of it is up to the script")
            case "pause":
                self._answer(command, step, f"paused after step {step}")
                self._pause(model, step)
            case "resume":
                self._answer(command, step, "the run is not paused", obeyed=False)
            case "checkpoint":
                self._answer(command, step, NO_CHECKPOINT, obeyed=False)
            case "learning_rate":
                self._set_learning_rate(command, model, step)
            case name:
                self._answer(command, step, f"a script trains this run, which knows no command {name}", obeyed=False)

    def _pause(self, model: Any, step: int) -> None:
        self._tell(PhaseChanged(time=clock.now(), phase=Phase.PAUSED))
        while not self.stopped:
            command = self._wait()
            if command is None:
                break
            if command.name == "resume":
                self._answer(command, step, f"going on from step {step}")
                break
            if command.name == "pause":
                self._answer(command, step, "the run is paused already", obeyed=False)
            else:
                self._do(command, model, step)
        self._tell(PhaseChanged(time=clock.now(), phase=Phase.TRAINING))

    def _wait(self) -> Command | None:
        """Wait for a command; ``None`` where the recording thread has ended, so that none can come.

        Raises:
            RunError: The thread hangs.
        """
        unheard, polls = 0, self._scribe.polls
        while self._scribe.writing:
            self._mailbox.wait_for_next(1.0)
            if command := self._mailbox.take():
                return command
            unheard, polls = (unheard + 1 if polls == self._scribe.polls else 0), self._scribe.polls
            if unheard >= UNHEARD_WAITS:
                raise RunError("the run cannot be read any more, so that nobody could end its pause")
        return None

    def _set_learning_rate(self, command: Command, model: Any, step: int) -> None:
        rate = command.argument
        if rate is None or not 0 < rate < math.inf:
            self._answer(command, step, "a learning rate must be a number above 0", obeyed=False)
            return
        try:
            model.optimizer.learning_rate = rate
        except Exception as error:  # noqa: BLE001 (an optimizer of the user's own may raise anything)
            self._answer(command, step, f"the optimizer refuses it: {describe(error)}", obeyed=False)
            return
        self.learning_rate = rate
        self._tell(LearningRateChanged(time=clock.now(), step=step, learning_rate=rate))
        self._answer(command, step, f"learning rate {rate:g} from step {step} on")

    def _answer(self, command: Command, step: int, answer: str, *, obeyed: bool = True) -> None:
        said = CommandAnswered(
            time=clock.now(), command=command.name, who=command.who, obeyed=obeyed, answer=answer, step=step
        )
        self._tell(CommandReply(command, said))
