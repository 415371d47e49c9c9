"""Asks for measurements of the inference of trained models."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from accel_engine.inference.candidate import Candidate
from accel_engine.inference.live_window import LiveWindow
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.protocol.request import ON_THE_CPU, EngineRequest, ExamplesDone

_WITHOUT_TPU = {"TPU_LOAD_LIBRARY": "0"}
"""Environment variables that hide TPUs, on which models are not measured."""


@dataclass(frozen=True, slots=True)
class BenchedModel:
    """A model to be measured.

    Attributes:
        name: Tells it from the others.
        reference: The model; of a file, the model whose data it is evaluated on. ``None`` if there is no data.
        file: The file or directory of a model as it is served; ``None`` to measure the model of ``reference``.
        is_foreign: Whether a file does not tell that it is from the run of ``reference``.
    """

    name: str
    reference: ModelReference | None = None
    file: Path | None = None
    is_foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """How models are measured.

    Attributes:
        data: Other data than the runs'. Models of files need it, else their examples are random.
        split: ``test``, ``validation`` or ``training``; ``auto`` is ``test`` where there are such examples.
        checkpoint: ``best``, ``last`` or a step; ``auto`` is ``best`` for runs that restore their best weights.
        scenario: One of :data:`accel_engine.inference.candidate.SCENARIOS`.
        batch_sizes: What is measured; ``None`` for 1, 2, 4 and so on until the throughput stops growing.
        seconds: Time limit of a measurement.
        target_latency: Seconds that the 99th percentile may be at most; ``None`` for any.
        devices: Such as ``cpu`` or ``gpu:0``; empty for all.
        precisions: Keras' dtype policies; empty for those that fit the device.
        xla: Whether XLA compiles the model: both, one after the other, by default.
        seed: Of random examples and arrivals.
        metrics: Whether metrics are computed, where the data of a model is known.
    """

    data: str = ""
    split: str = "auto"
    checkpoint: str = "auto"
    scenario: str = "multi-stream"
    batch_sizes: tuple[int, ...] | None = None
    seconds: float = 5.0
    target_latency: float | None = None
    devices: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    xla: tuple[bool, ...] = (False, True)
    seed: int = 0
    metrics: bool = True

    @property
    def environment(self) -> Mapping[str, str]:
        """What hides the devices that are not measured; see :attr:`EngineRequest.environment`."""
        on_cpu = bool(self.devices) and all(each.startswith("cpu") for each in self.devices)
        return ON_THE_CPU if on_cpu else _WITHOUT_TPU


@dataclass(frozen=True, slots=True)
class BenchNotes:
    """The end of a bench, with warnings for the user."""

    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchRequest(EngineRequest[BenchNotes]):
    """A request to measure models; each candidate is a part of the answer once it was measured.

    Attributes:
        models: The models.
        options: How.
        is_live: Whether what was measured of a candidate so far comes meanwhile.
    """

    function: ClassVar = "accel_engine.trained.bench.bench:bench"
    result: ClassVar = BenchNotes
    parts: ClassVar = (ExamplesDone, Candidate, LiveWindow)
    is_batch: ClassVar = False

    models: tuple[BenchedModel, ...]
    options: BenchOptions
    is_live: bool = False

    @property
    def environment(self) -> Mapping[str, str]:
        """See :attr:`BenchOptions.environment`."""
        return self.options.environment


REQUEST = BenchRequest
