"""Begins a conversation with an engine process that tries one plan: it compiles the plan's steps, and takes steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from accel_engine.plan import Plan
from accel_engine.requests.protocol.request import EngineRequest, ExamplesDone, Problem


@dataclass(frozen=True, slots=True)
class TrialStart:
    """A plan to try, and where its steps begin.

    Attributes:
        plan: The plan.
        step: The step of the checkpoint to start from; 0 for the initial weights.
        run: Directory of the run that has the checkpoint; ``None`` for none.
    """

    plan: Plan
    step: int = 0
    run: Path | None = None


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """An answer of a process that tries a plan, to all but :class:`TakeSteps`.

    Attributes:
        memory: Bytes that a device had allocated at most so far, or by which the process grew; ``None`` if unknown.
        seconds: How long it took to validate, or to save.
        metrics: Of a validation by name; none without validation data.
    """

    memory: float | None = None
    seconds: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrialReady:
    """A plan whose steps are compiled.

    Attributes:
        build_seconds: How long it took to read the data and build the model.
        compile_seconds: How long it took to compile a step and take it.
        global_batch: Examples of a step.
        steps_per_epoch: Steps of an epoch; 0 if they are unknown.
        devices: TensorFlow's names of the devices that train.
        has_orders: Whether a seed gives another order of the examples.
        replicas: Number of replicas, which share the global batch.
        learning_rate: The optimizer's constant rate; ``None`` if it follows a schedule, or is unknown.
        optimizer: Its class; empty if the model has several.
        examples: Number of training examples; ``None`` for a stream.
        device_memory: Memory of each device in bytes; ``None`` for host memory.
        memory: See :class:`TrialAnswer`.
    """

    build_seconds: float
    compile_seconds: float
    global_batch: int
    steps_per_epoch: int
    devices: tuple[str, ...]
    has_orders: bool
    replicas: int = 1
    learning_rate: float | None = None
    optimizer: str = ""
    examples: int | None = None
    device_memory: int | None = None
    memory: float | None = None

    @property
    def on_cpu(self) -> bool:
        """Whether CPUs train, so that its memory is the process's."""
        return self.devices[0].startswith("CPU")


@dataclass(frozen=True, slots=True)
class MemberReady:
    """A process that serves the coordinator of a trial has read its data.

    Attributes:
        memory: See :class:`TrialAnswer`.
        device_memory: Memory of each of its devices in bytes; ``None`` for host memory.
    """

    memory: float | None
    device_memory: int | None


@dataclass(frozen=True, slots=True)
class Turn:
    """Steps that were taken one after the other.

    Attributes:
        steps: Their number.
        examples: Number of their examples, over all replicas.
        seconds: How long they took, with the wait for batches.
        losses: The loss of each.
        memory: See :class:`TrialAnswer`.
    """

    steps: int
    examples: int
    seconds: float
    losses: tuple[float, ...]
    memory: float | None = None

    @property
    def examples_per_second(self) -> float:
        """Examples a second."""
        return self.examples / self.seconds

    @property
    def steps_per_second(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds


@dataclass(frozen=True, slots=True)
class TakeSteps:
    """Asks for steps, answered by a :class:`Turn`: for some seconds, some steps, or one at each of some learning rates.

    Attributes:
        steps: Their number.
        seconds: How long, at least one chunk.
        rates: Learning rates; the first loss that is not finite ends the turn.
    """

    steps: int = 0
    seconds: float = 0.0
    rates: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ReturnToStart:
    """Asks to return to the start.

    Attributes:
        seed: Of the order of the examples from there on; by default the plan's.
        initialize: Whether the weights are the initial ones of this seed, if the start is not a checkpoint.
    """

    seed: int | None
    initialize: bool


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
    """A request to try a plan; the answer is a :class:`TrialReady`, and more of the parts as they are asked for.

    Under a strategy of several processes, the one that is asked starts and leads the others.

    Attributes:
        start: The plan.
        work_folder: A directory for this trial, with a copy of the checkpoint to start from.
    """

    function: ClassVar = "accel_engine.engine_main.trial_server:try_plan"
    result: ClassVar = Problem
    parts: ClassVar = (ExamplesDone, TrialReady, MemberReady, Turn, TrialAnswer)
    asks: ClassVar = (TakeSteps, ReturnToStart, ValidateTrial, SaveTrial, TellMemory)

    start: TrialStart
    work_folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """Nothing: a trial takes the devices on which the plan trains."""
        return {}


REQUEST = TrialRequest
