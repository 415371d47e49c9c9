"""Events of a run's progress: phases, epochs, validations, checkpoints, commands, warnings, its end."""

from dataclasses import dataclass, field

from accel_engine.events.event import Event, Outcome, Phase
from accel_engine.json_values import Count, JsonValue, Number, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged(Event):
    """The engine entered another phase.

    Attributes:
        phase: The new phase.
        detail: A short detail for the screen, or empty.
    """

    phase: Phase
    detail: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnded(Event):
    """An epoch's last step was taken.

    Attributes:
        epoch: Counted from 1.
        step: Steps taken in the whole run.
        metrics: The loss and the metrics over all of the epoch's examples, as in ``fit``: each example with the weights
            of its step. Of all other series of steps, their mean.
        seconds: Training time, without validation and checkpoints.
        waited: With ``patience``, if a metric of training is monitored: epochs since its last improvement.
    """

    epoch: Count
    step: Count
    metrics: dict[str, Number]
    seconds: Number
    waited: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated(Event):
    """The model was validated.

    Attributes:
        epoch: Epochs completed.
        step: Steps taken in the whole run.
        metrics: Means over the validation examples, including ``loss``.
        seconds: Duration, without pauses.
        by_command: Whether a command asked for it, at a step where the plan has none.
        waited: With ``patience``, if a metric of validation is monitored: validations since its last improvement.
        baseline: What a prediction that has learned nothing reaches on the same examples, by the names of ``metrics``:
            ``accuracy``, or ``mean_absolute_error``, ``root_mean_squared_error`` and ``r2_score``; empty if unknown.
        baseline_name: What that predicts: ``most frequent class: cat``, ``mean of the training targets``,
            ``last known value``; empty if unknown.
    """

    epoch: Count
    step: Count
    metrics: dict[str, Number]
    seconds: Number
    by_command: bool = False
    waited: Count | None = None
    baseline: dict[str, Number] = field(default_factory=dict)
    baseline_name: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSaved(Event):
    """A checkpoint was saved.

    Attributes:
        epoch: Epochs completed.
        step: Steps taken in the whole run.
        path: Path relative to the run's directory.
        seconds: Duration.
        best: Whether the monitored metric is at its best at this step.
    """

    epoch: Count
    step: Count
    path: Text
    seconds: Number
    best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMeasured(Event):
    """How the time since the last such event, or since the first step, was spent; at the end of epochs and between.

    Attributes:
        first_step: Steps taken at its beginning.
        step: Steps taken at its end.
        seconds: The whole time, in seconds.
        spent: Seconds by what took them: ``steps``, of which the device waited ``input`` for batches; ``validation``,
            ``checkpoints``, ``tracing``, ``commands`` such as pauses and validations by command, waits for other
            ``workers``. The rest is what comes between.
    """

    first_step: Count
    step: Count
    seconds: Number
    spent: dict[str, Number]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStarted(Event):
    """A part of a script's run started: a ``fit``, a recorder's loop, or lines of the output with values.

    Attributes:
        part: Counted from 1.
        name: Its name, such as the model's.
        step: Steps taken in the whole run before it.
        epoch: Epochs completed in the whole run before it.
        parsed: Whether its values come from lines of the output, so that it takes no commands.
    """

    part: Count
    name: Text
    step: Count
    epoch: Count
    parsed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartEnded(Event):
    """A part of a script's run ended; the script continues.

    Attributes:
        part: Counted from 1.
        name: Its name.
        outcome: How it ended.
        step: Steps taken in the whole run.
        epoch: Epochs completed in the whole run.
        seconds: Time since it started.
        steps_per_second: Training speed after the first chunk; 0 if not measured.
        metrics: The last epoch's means; validation's have the prefix ``validation_``.
        reason: Why it stopped or failed.
    """

    part: Count
    name: Text
    outcome: Outcome
    step: Count
    epoch: Count
    seconds: Number
    steps_per_second: Number = 0.0
    metrics: dict[str, Number] = field(default_factory=dict)
    reason: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateChanged(Event):
    """The learning rate changed.

    Attributes:
        step: The first step with it, counted from 0.
        learning_rate: The new rate.
        schedule: Class name of the schedule that it follows from there on; empty if it is constant.
    """

    step: Count
    learning_rate: Number
    schedule: Text = ""


CURE, UNDO = "cure", "undo"
"""What a change of the plan or the learning rate is for: it cures a finding, or takes the last cure back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAnswered(Event):
    """The engine answered a command.

    Attributes:
        command: Name of the command.
        who: Its sender.
        obeyed: Whether it was carried out.
        answer: What was done, or why not.
        step: Steps taken at that time.
        reason: Why it was sent; empty if unknown.
        purpose: :data:`CURE`, :data:`UNDO` or empty.
    """

    command: Text
    who: Text
    obeyed: bool
    answer: Text
    step: Count
    reason: Text = ""
    purpose: Text = ""


OUT_OF_MEMORY, NOT_A_NUMBER, ENGINE_LOST = "out of memory", "not a number", "engine lost"
"""The troubles of :class:`Recovered`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(Event):
    """Training met trouble and continues by itself.

    Attributes:
        trouble: :data:`OUT_OF_MEMORY`, :data:`NOT_A_NUMBER` or :data:`ENGINE_LOST`.
        step: The step from which it continues: the steps after it are trained again.
        failed_step: Steps taken when the trouble was met.
        reason: What happened.
        action: What was done about it.
        changes: Fields of the plan that changed, with their new values.
    """

    trouble: Text
    step: Count
    failed_step: Count
    reason: Text
    action: Text
    changes: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChanged(Event):
    """Fields of the run's plan changed, while it trained or before it continued.

    Attributes:
        step: The first step with the new values, counted from 0.
        changes: The changed fields, with their new values.
        before: The same fields, with the values before.
        reason: Why: the finding that it cures, or who asked for it; empty if unknown.
        purpose: :data:`CURE`, :data:`UNDO` or empty.
    """

    step: Count
    changes: dict[str, JsonValue]
    before: dict[str, JsonValue]
    reason: Text = ""
    purpose: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Event):
    """The engine told the user something.

    Attributes:
        message: What.
        severity: ``warning``, or ``information`` for what it understood of the data.
    """

    message: Text
    severity: Text = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The run ended; its last event unless it is continued.

    Attributes:
        outcome: How it ended.
        steps: Steps taken in the whole run.
        epochs: Epochs completed in the whole run.
        seconds: Time since this engine started the run.
        steps_per_second: Training speed after the first chunk; 0 if not measured.
        metrics: The last epoch's means; validation's have the prefix ``validation_``.
        reason: Why it stopped or failed.
        hint: How to fix it.
        flops_per_second: FLOP/s at that speed, from :class:`WorkCounted`; ``None`` if unknown.
        mfu: Model FLOPs utilization, the share of the devices' peak; ``None`` if unknown.
        model_step: The step of the weights in ``model.keras``, if they are the best ones and not the last.
        temporary: Whether it ended for a reason that may be temporary, such as a preempted machine or a lost worker.
    """

    outcome: Outcome
    steps: Count
    epochs: Count
    seconds: Number
    steps_per_second: Number = 0.0
    metrics: dict[str, Number] = field(default_factory=dict)
    reason: Text = ""
    hint: Text = ""
    flops_per_second: Number | None = None
    mfu: Number | None = None
    model_step: Count | None = None
    temporary: bool = False
