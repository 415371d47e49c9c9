"""How a run goes: its phases, epochs, validations and checkpoints, what was asked of it, and its end."""

from dataclasses import dataclass

from accel_engine.events.event import Event, Outcome, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged(Event):
    """The engine turned to something else.

    Attributes:
        detail: More about it in a few words, or nothing.
    """

    phase: Phase
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnded(Event):
    """An epoch's last step was taken.

    Attributes:
        epoch: Counted from 1.
        step: Steps taken so far in the whole run.
        metrics: Mean over the epoch's steps of every series, among them ``loss``.
        seconds: Time that its training took, without validation and checkpoint.
    """

    epoch: int
    step: int
    metrics: dict[str, float]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated(Event):
    """The model was tried on the validation data.

    Attributes:
        metrics: Means over the examples, ``loss`` among them.
    """

    epoch: int
    step: int
    metrics: dict[str, float]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSaved(Event):
    """Everything that is needed to go on from here was written.

    Attributes:
        path: Relative to the run's directory.
    """

    epoch: int
    step: int
    path: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateChanged(Event):
    """The learning rate is another from this step on.

    Attributes:
        step: The first step taken with it, counted from 0.
        schedule: The class of the schedule that it follows from there on; empty where it stays as it is.
    """

    step: int
    learning_rate: float
    schedule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAnswered(Event):
    """A command was obeyed, or not.

    Attributes:
        command: Its name.
        who: Who asked.
        obeyed: Whether it was done.
        answer: What was done, or why not.
        step: Steps taken when it was answered.
    """

    command: str
    who: str
    obeyed: bool
    answer: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Event):
    """Something the user should know, that does not end the run."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The engine is done; the last event of a run until it is resumed.

    Attributes:
        steps: Steps taken in the whole run.
        epochs: Epochs completed in the whole run.
        seconds: Time since this engine took the run up.
        steps_per_second: While training, after the first chunk; 0 when nothing was measured.
        metrics: The last epoch's means; validation's are prefixed with ``validation_``.
        reason: Why it stopped or failed.
        hint: What could be done about it.
        flops_per_second: Operations a second at that rate, as :class:`WorkCounted` has them; ``None`` where unknown.
        mfu: Their share of the devices' peak; ``None`` where unknown.
    """

    outcome: Outcome
    steps: int
    epochs: int
    seconds: float
    steps_per_second: float
    metrics: dict[str, float]
    reason: str = ""
    hint: str = ""
    flops_per_second: float | None = None
    mfu: float | None = None
