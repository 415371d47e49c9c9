"""A way to serve a model, and what was measured of it; without TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Self

from accel_engine.inference.measurement.percentiles import Percentile
from accel_engine.inference.measurement.window import LAST, TOLERANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutMetrics:
    """Metrics on some examples."""

    values: Mapping[str, float | None] = field(default_factory=dict)
    """The metrics by Keras' names: the one that counts first, then the loss, then the others; ``None`` for what is not
    a finite number."""
    split: str
    """``test``, ``validation`` or ``training``, or the file name of other data."""
    examples: int
    """Number of examples."""
    source: str
    """The id of the run, or the file, whose data they are of."""
    fingerprint: str
    """Fingerprint of their targets; empty for a stream."""
    is_foreign: bool = False
    """Whether the model does not tell its run, so that its training may have seen these examples."""

    @property
    def main(self) -> tuple[str, float | None]:
        """The name and the value of the metric that counts."""
        return next(iter(self.values.items()))

    def has_same_examples(self, other: Self) -> bool:
        """Whether both are of the same examples."""
        if self.fingerprint or other.fingerprint:
            return (self.examples, self.fingerprint) == (other.examples, other.fingerprint)
        return (self.source, self.split) == (other.source, other.split)


SCENARIOS = ("single-stream", "multi-stream", "offline", "server")
"""How requests come, by the names of MLPerf's LoadGen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A model with the runtime, device and scenario in which it is served."""

    model: str
    """The run's id, or the file's name, with as much of its path as tells it from other models."""
    format: str
    """``keras``, ``savedmodel``, ``tflite`` or ``onnx``."""
    device: str
    """TensorFlow's name of the device in lower case, such as ``cpu:0``."""
    xla: bool
    """Whether XLA compiles it."""
    precision: str = ""
    """Keras' dtype policy; empty for formats that have their own."""
    load_seconds: float | None = None
    """How long the file took to load; ``None`` for a run, whose data is loaded with it."""
    size: int = 0
    """Bytes of the files; of a run, of the weights."""

    @property
    def title(self) -> str:
        """Such as ``k3fp on cpu:0 with XLA, float32``."""
        return f"{self.model} on {self.device}{' with XLA' if self.xla else ''}, {self.precision or self.format}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Setup):
    """The measurements of a model with a batch size."""

    scenario: str
    """One of :data:`SCENARIOS`."""
    batch_size: int
    """Examples of a request; of the scenario server, the most requests that are served together."""
    percentiles: Mapping[str, Percentile] = field(default_factory=dict)
    """Latencies of requests in seconds: ``p50``, ``p90``, ``p99`` and ``p999``; empty in the scenario offline."""
    throughput: float = 0.0
    """Examples per second; of the scenario server, the highest rate of requests within the bound."""
    requests: int = 0
    """Requests that these figures are of."""
    seconds: float = 0.0
    """How long they took."""
    stable: bool = False
    """Whether the last windows agree."""
    disagreement: float = 0.0
    """Their largest relative deviation."""
    first_seconds: float = 0.0
    """How long the first request took, in which a model is traced and compiled."""
    warm_up_requests: int = 0
    """Requests between the first one and those that count."""
    warm_up_seconds: float = 0.0
    """How long they took."""
    memory: int | None = None
    """Bytes of memory at the peak; ``None`` if that cannot be read."""
    energy: float | None = None
    """Joules per example; ``None`` if it cannot be read."""
    metrics: HeldOutMetrics | None = None
    """Metrics on examples that training did not see; ``None`` if they are not known."""
    problem: str = ""
    """Why nothing could be measured; empty if it was."""
    began: float = 0.0
    """When its measurement began, in seconds since the Unix epoch; 0 if unknown."""

    @property
    def setup(self) -> Setup:
        """The model as it was served."""
        return Setup(**{each.name: getattr(self, each.name) for each in fields(Setup)})

    @property
    def instability(self) -> str:
        """Why it is not stable; empty if it is, or was not measured."""
        if self.stable or self.problem:
            return ""
        if self.disagreement > TOLERANCE:
            return f"its last windows differ by {100 * self.disagreement:.0f}%"
        return "too many requests were late" if self.scenario == "server" else f"there was no time for {LAST} windows"
