"""Begins a conversation with an engine process that tries one plan: it compiles the plan's steps, and takes steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from accel_engine.plan import Plan
from accel_engine.requests.protocol.request import EngineRequest, ExamplesDone, Problem


@dataclass(frozen=True, slots=True)
class TrialStart:
    """A plan to try, and where its steps begin."""

    plan: Plan
    step: int = 0
    """The step of the checkpoint to start from; 0 for the initial weights."""
    run: Path | None = None
    """Directory of the run that has the checkpoint; ``None`` for none."""


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """An answer of a process that tries a plan, to all but :class:`TakeSteps`."""

    memory: float | None = None
    """Bytes that a device had allocated at most so far, or by which the process grew; ``None`` if unknown."""
    seconds: float = 0.0
    """How long it took to validate, or to save."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The metrics of a validation by name; none without validation data."""


@dataclass(frozen=True, slots=True)
class TrialReady:
    """A plan whose steps are compiled."""

    build_seconds: float
    """How long it took to read the data and build the model."""
    compile_seconds: float
    """How long it took to compile a step and take it."""
    global_batch: int
    """Examples of a step."""
    steps_per_epoch: int
    """Steps of an epoch; 0 if they are unknown."""
    devices: tuple[str, ...]
    """TensorFlow's names of the devices that train."""
    has_orders: bool
    """Whether a seed gives another order of the examples."""
    replicas: int = 1
    """Number of replicas, which share the global batch."""
    learning_rate: float | None = None
    """The optimizer's constant rate; ``None`` if it follows a schedule, or is unknown."""
    optimizer: str = ""
    """Its class; empty if the model has several."""
    examples: int | None = None
    """Number of training examples; ``None`` for a stream."""
    device_memory: int | None = None
    """Memory of each device in bytes; ``None`` for host memory."""
    memory: float | None = None
    """See :class:`TrialAnswer`."""

    @property
    def on_cpu(self) -> bool:
        """Whether CPUs train, so that its memory is the process's."""
        return self.devices[0].startswith("CPU")


@dataclass(frozen=True, slots=True)
class MemberReady:
    """A process that serves the coordinator of a trial has read its data."""

    memory: float | None
    """See :class:`TrialAnswer`."""
    device_memory: int | None
    """Memory of each of its devices in bytes; ``None`` for host memory."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Steps that were taken one after the other."""

    steps: int
    """Their number."""
    examples: int
    """Number of their examples, over all replicas."""
    seconds: float
    """How long they took, with the wait for batches."""
    losses: tuple[float, ...]
    """The loss of each."""
    memory: float | None = None
    """See :class:`TrialAnswer`."""

    @property
    def examples_per_second(self) -> float:
        """Mean number of examples per second in this turn."""
        return self.examples / self.seconds

    @property
    def steps_per_second(self) -> float:
        """Mean number of steps per second in this turn."""
        return self.steps / self.seconds


@dataclass(frozen=True, slots=True)
class TakeSteps:
    """Asks for steps, answered by a :class:`Turn`: for some seconds, some steps, or one at each of some rates."""

    steps: int = 0
    """Their number."""
    seconds: float = 0.0
    """How long, at least one chunk."""
    rates: tuple[float, ...] = ()
    """Learning rates; the first loss that is not finite ends the turn."""


@dataclass(frozen=True, slots=True)
class ReturnToStart:
    """Asks to return to the start."""

    seed: int | None
    """The seed of the order of the examples from there on; by default the plan's."""
    initialize: bool
    """Whether the weights are the initial ones of this seed, if the start is not a checkpoint."""


@dataclass(frozen=True, slots=True)
class ValidateTrial:
    """Asks to validate the model."""


@dataclass(frozen=True, slots=True)
class SaveTrial:
    """Asks to save a checkpoint, and to delete it."""


@dataclass(frozen=True, slots=True)
class TellMemory:
    """Asks a process that serves a coordinator for its memory."""


@dataclass(frozen=True, slots=True)
class TrialRequest(EngineRequest[Problem]):
    """A request to try a plan; the answer is a :class:`TrialReady`, and then the parts that are asked for.

    Under a strategy of several processes, the one that is asked starts and leads the others.
    """

    function: ClassVar = "accel_engine.engine_main.trial_server:try_plan"
    result: ClassVar = Problem
    parts: ClassVar = (ExamplesDone, TrialReady, MemberReady, Turn, TrialAnswer)
    asks: ClassVar = (TakeSteps, ReturnToStart, ValidateTrial, SaveTrial, TellMemory)

    start: TrialStart
    work_folder: Path
    """A directory for this trial, with a copy of the checkpoint to start from."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Nothing: a trial takes the devices on which the plan trains."""
        return {}


REQUEST = TrialRequest
