"""Doing what commands ask of a script's training, between two batches."""

import math
import time
from collections.abc import Callable
from typing import Any

from accel_engine.events import CommandAnswered, Event, LearningRateChanged, Phase, PhaseChanged
from accel_engine.recording.scribe import Answer
from accel_engine.run.commands import Command
from accel_engine.training.control import Mailbox

NO_CHECKPOINT = "a script trains this run: it alone can write a checkpoint"


class Obeying:
    """Obeys the commands of one ``fit``, and answers each.

    Args:
        mailbox: Where they arrive.
        tell: Has something written to the run.

    Attributes:
        stopped: Who asked to stop; empty while nobody did.
        learning_rate: What the run knows of as such.
    """

    def __init__(self, mailbox: Mailbox, tell: Callable[[Event | Answer], None]) -> None:
        self._mailbox = mailbox
        self._tell = tell
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
        self._tell(PhaseChanged(time=time.time(), phase=Phase.PAUSED))
        while not self.stopped:
            command = self._mailbox.wait()
            if command.name == "resume":
                self._answer(command, step, f"going on from step {step}")
                break
            if command.name == "pause":
                self._answer(command, step, "the run is paused already", obeyed=False)
            else:
                self._do(command, model, step)
        self._tell(PhaseChanged(time=time.time(), phase=Phase.TRAINING))

    def _set_learning_rate(self, command: Command, model: Any, step: int) -> None:
        rate = command.argument
        if rate is None or not 0 < rate < math.inf:
            self._answer(command, step, "a learning rate must be a number above 0", obeyed=False)
            return
        try:
            model.optimizer.learning_rate = rate
        except (AttributeError, TypeError, ValueError) as error:
            words = " ".join(str(error).split())
            self._answer(command, step, f"the optimizer refuses it: {words}", obeyed=False)
            return
        self.learning_rate = rate
        self._tell(LearningRateChanged(time=time.time(), step=step, learning_rate=rate))
        self._answer(command, step, f"learning rate {rate:g} from step {step} on")

    def _answer(self, command: Command, step: int, answer: str, *, obeyed: bool = True) -> None:
        said = CommandAnswered(
            time=time.time(), command=command.name, who=command.who, obeyed=obeyed, answer=answer, step=step
        )
        self._tell(Answer(command, said))
