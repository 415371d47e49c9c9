"""Events of a run's progress: phases, epochs, validations, checkpoints, commands, warnings, its end."""

from dataclasses import dataclass, field

from accel_engine.events.event import Event, Outcome, Phase
from accel_engine.json_values import Count, JsonValue, Number, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged(Event):
    """The engine entered another phase."""

    phase: Phase
    detail: Text = ""
    """A short detail for the screen, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnded(Event):
    """An epoch's last step was taken."""

    epoch: Count
    """Counted from 1."""
    step: Count
    """Steps taken in the whole run."""
    metrics: dict[str, Number]
    """The loss and the metrics over all of the epoch's examples, as in ``fit``: each example with the weights of its
    step. The mean of all other series of steps."""
    seconds: Number
    """Training time, without validation and checkpoints."""
    waited: Count | None = None
    """With ``patience``, if a metric of training is monitored: epochs since its last improvement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated(Event):
    """The model was validated."""

    epoch: Count
    """Epochs completed."""
    step: Count
    """Steps taken in the whole run."""
    metrics: dict[str, Number]
    """Means over the validation examples, including ``loss``."""
    seconds: Number
    """Duration, without pauses."""
    by_command: bool = False
    """Whether a command asked for it, at a step where the plan has none."""
    waited: Count | None = None
    """With ``patience``, if a metric of validation is monitored: validations since its last improvement."""
    baseline: dict[str, Number] = field(default_factory=dict)
    """What a prediction that has learned nothing reaches on the same examples, by the names of ``metrics``:
    ``accuracy``, or ``mean_absolute_error``, ``root_mean_squared_error`` and ``r2_score``; empty if unknown."""
    baseline_name: Text = ""
    """What makes this prediction: ``most frequent class: cat``, ``mean of the training targets``, ``last known value``;
    empty if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSaved(Event):
    """A checkpoint was saved."""

    epoch: Count
    """Epochs completed."""
    step: Count
    """Steps taken in the whole run."""
    path: Text
    """Path relative to the run's directory."""
    seconds: Number
    best: bool = False
    """Whether the monitored metric is at its best at this step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeMeasured(Event):
    """How the time since the last such event, or since the first step, was spent; at the end of epochs and between."""

    first_step: Count
    """Steps taken at its beginning."""
    step: Count
    """Steps taken at its end."""
    seconds: Number
    """The whole time, in seconds."""
    spent: dict[str, Number]
    """Seconds by what took them: ``steps``, of which the device waited ``input`` for batches; ``validation``,
    ``checkpoints``, ``tracing``, ``commands`` such as pauses and validations by command, waits for other ``workers``.
    The rest is what comes between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStarted(Event):
    """A part of a script's run started: a ``fit``, a recorder's loop, or lines of the output with values."""

    part: Count
    """Counted from 1."""
    name: Text
    """Its name, such as the model's."""
    step: Count
    """Steps taken in the whole run before it."""
    epoch: Count
    """Epochs completed in the whole run before it."""
    parsed: bool = False
    """Whether its values come from lines of the output, so that it takes no commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartEnded(Event):
    """A part of a script's run ended; the script continues."""

    part: Count
    """Counted from 1."""
    name: Text
    outcome: Outcome
    """How it ended."""
    step: Count
    """Steps taken in the whole run."""
    epoch: Count
    """Epochs completed in the whole run."""
    seconds: Number
    """Time since it started."""
    steps_per_second: Number = 0.0
    """Training speed after the first chunk; 0 if not measured."""
    metrics: dict[str, Number] = field(default_factory=dict)
    """The last epoch's means; validation's have the prefix ``validation_``."""
    reason: Text = ""
    """Why it stopped or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateChanged(Event):
    """The learning rate changed."""

    step: Count
    """The first step with it, counted from 0."""
    learning_rate: Number
    """The new rate."""
    schedule: Text = ""
    """Class name of the schedule that it follows from there on; empty if it is constant."""


CURE, UNDO = "cure", "undo"
"""What a change of the plan or the learning rate is for: it cures a finding, or takes the last cure back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAnswered(Event):
    """The engine answered a command."""

    command: Text
    """Name of the command."""
    who: Text
    """Its sender."""
    obeyed: bool
    """Whether it was carried out."""
    answer: Text
    """The change that was made, or why it was refused."""
    step: Count
    """Steps taken at that time."""
    reason: Text = ""
    """Why it was sent; empty if unknown."""
    purpose: Text = ""
    """:data:`CURE`, :data:`UNDO` or empty."""


CLASS_WEIGHT_IGNORED, EMPTY_BATCH = "class_weight has keys without effect", "Keras counts an empty batch"
ARGUMENT_LOST = "get_config lacks an argument"
"""How a :class:`Warned` on a script's call of ``fit`` begins that Keras carries out otherwise than it says."""


OUT_OF_MEMORY, NOT_A_NUMBER, ENGINE_LOST = "out of memory", "not a number", "engine lost"
"""The troubles of :class:`Recovered`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(Event):
    """Training met trouble and continues by itself."""

    trouble: Text
    """:data:`OUT_OF_MEMORY`, :data:`NOT_A_NUMBER` or :data:`ENGINE_LOST`."""
    step: Count
    """The step from which it continues: the steps after it are trained again."""
    failed_step: Count
    """Steps taken when the trouble was met."""
    reason: Text
    """The trouble, in words."""
    action: Text
    """The action that was taken, in words."""
    changes: dict[str, JsonValue] = field(default_factory=dict)
    """Fields of the plan that changed, with their new values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChanged(Event):
    """Fields of the run's plan changed, while it trained or before it continued."""

    step: Count
    """The first step with the new values, counted from 0."""
    changes: dict[str, JsonValue]
    """The changed fields, with their new values."""
    before: dict[str, JsonValue]
    """The same fields, with the values before."""
    reason: Text = ""
    """Why: the finding that it cures, or who asked for it; empty if unknown."""
    purpose: Text = ""
    """:data:`CURE`, :data:`UNDO` or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Event):
    """The engine told the user something."""

    message: Text
    """The warning."""
    severity: Text = "warning"
    """``warning``, or ``information`` for what it understood of the data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The run ended; its last event unless it is continued."""

    outcome: Outcome
    """How it ended."""
    steps: Count
    """Steps taken in the whole run."""
    epochs: Count
    """Epochs completed in the whole run."""
    seconds: Number
    """Time since this engine started the run."""
    steps_per_second: Number = 0.0
    """Training speed after the first chunk; 0 if not measured."""
    metrics: dict[str, Number] = field(default_factory=dict)
    """The last epoch's means; validation's have the prefix ``validation_``."""
    reason: Text = ""
    """Why it stopped or failed."""
    hint: Text = ""
    """How to fix it."""
    flops_per_second: Number | None = None
    """FLOP/s at that speed, from :class:`WorkCounted`; ``None`` if unknown."""
    mfu: Number | None = None
    """Model FLOPs utilization, the share of the devices' peak; ``None`` if unknown."""
    model_step: Count | None = None
    """The step of the weights in ``model.keras``, if they are the best ones and not the last."""
    temporary: bool = False
    """Whether it ended for a reason that may be temporary, such as a preempted machine or a lost worker."""
