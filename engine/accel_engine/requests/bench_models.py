"""Asks for measurements of the inference of trained models."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from accel_engine.errors import UsageError
from accel_engine.inference.candidate import SCENARIOS, Candidate
from accel_engine.inference.measurement.percentiles import LiveWindow
from accel_engine.plan.options import OptionSpec, option, parse_latency
from accel_engine.requests.protocol.model_reference import CHECKPOINT, ModelReference, read_devices
from accel_engine.requests.protocol.request import ON_THE_CPU, WITHOUT_TPU, EngineRequest, ExamplesDone

_SIZE = re.compile(r"[1-9]\d{0,8}", re.ASCII)


def _read_sizes(text: str) -> tuple[int, ...] | None:
    sizes = tuple(dict.fromkeys(word.strip() for word in text.split(","))) if text.strip() else ()
    if not all(_SIZE.fullmatch(size) for size in sizes):
        raise UsageError(f"{text!r} are not batch sizes: give positive whole numbers, such as 1,8,32")
    return tuple(map(int, sizes)) or None


@dataclass(frozen=True, slots=True)
class BenchedModel:
    """A model to be measured."""

    name: str
    """Tells it from the others."""
    reference: ModelReference | None = None
    """The model; of a file, the model whose data it is evaluated on. ``None`` if there is no data."""
    file: Path | None = None
    """The file or directory of a model that is served; ``None`` to measure the model of ``reference``."""
    is_foreign: bool = False
    """Whether a file does not tell that it is from the run of ``reference``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """How models are measured.

    Raises:
        UsageError: An option contradicts the scenario.
    """

    data: str = option("", OptionSpec("Other examples than the runs'; files get random ones.", str))
    """Other data than the runs'. Models of files need it, else their examples are random."""
    split: str = "auto"
    """``test``, ``validation`` or ``training``; ``auto`` is ``test`` where there are such examples."""
    scenario: str = option(
        "multi-stream", OptionSpec("How requests come, as in MLPerf.", str, choices=tuple(SCENARIOS))
    )
    """One of :data:`accel_engine.inference.candidate.SCENARIOS`."""
    batch_sizes: tuple[int, ...] | None = option(
        None,
        OptionSpec(
            "Batch sizes to measure; 1, 2, 4 and so on by default, until the throughput stops growing.",
            tuple,
            metavar="1,2,...",
            read=_read_sizes,
        ),
    )
    """What is measured; ``None`` for 1, 2, 4 and so on until the throughput stops growing."""
    seconds: float = option(
        5.0,
        OptionSpec(
            "Time limit of a measurement, which ends earlier when it is stable.",
            float,
            minimum=0.1,
            maximum=3600,
            label="time limit",
        ),
    )
    """Time limit of a measurement."""
    target_latency: float | None = option(
        None,
        OptionSpec("The most that p99 may be.", str, metavar="10ms", hint="of p99, such as 10ms", read=parse_latency),
    )
    """Seconds that the 99th percentile may be at most; ``None`` for any."""
    target_rate: float | None = option(
        None,
        OptionSpec(
            "Examples per second to be served.",
            float,
            above=0,
            maximum=1e12,
            optional=True,
            metavar="500",
            hint="examples/s: how many machines?",
        ),
    )
    """Examples per second to be served, which change the conclusions alone; ``None`` for none."""
    devices: tuple[str, ...] = option(
        (),
        OptionSpec(
            "Where to measure; on all by default.",
            tuple,
            metavar="cpu,gpu",
            hint="cpu,gpu:0; empty for all",
            read=read_devices,
        ),
    )
    """Such as ``cpu`` or ``gpu:0``; empty for all."""
    xla: str = option("both", OptionSpec("Compile with XLA.", str, choices=("both", "on", "off"), label="XLA"))
    """Whether XLA compiles the model: ``on``, ``off`` or ``both``."""
    precisions: tuple[str, ...] = option(
        (),
        OptionSpec(
            "Precisions of runs; by default the model's own and those that the device computes fast in.",
            tuple,
            choices=("float32", "mixed_float16", "mixed_bfloat16"),
            label="precision",
            hint="float32; empty for fast ones",
            flags=("--precision",),
        ),
    )
    """Keras' dtype policies; empty for those that fit the device."""
    checkpoint: str = option("auto", CHECKPOINT)
    """``best``, ``last`` or a step; ``auto`` is ``best`` for runs that restore their best weights."""
    seed: int = option(0, OptionSpec("Of random examples and arrivals.", int, minimum=0))
    """Of random examples and arrivals."""
    metrics: bool = option(
        default=True, spec=OptionSpec("Compute the loss and the metrics on examples that training did not see.", bool)
    )
    """Whether metrics are computed, where the data of a model is known."""

    def __post_init__(self) -> None:
        if self.scenario == "server" and self.target_latency is None:
            raise UsageError("server searches the highest rate within a latency: give a target latency")
        if self.scenario == "offline" and self.target_latency is not None:
            raise UsageError("offline has no latencies: leave out the target latency, or use multi-stream")
        if self.scenario == "single-stream" and self.batch_sizes not in (None, (1,)):
            raise UsageError("single-stream sends single examples: leave out batch sizes, or use multi-stream")

    @property
    def compiled(self) -> tuple[bool, ...]:
        """Whether XLA compiles the model, one after the other."""
        return {"both": (False, True), "on": (True,), "off": (False,)}[self.xla]

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that hide the devices that are not measured; see :attr:`EngineRequest.environment`."""
        on_cpu = bool(self.devices) and all(each.startswith("cpu") for each in self.devices)
        return ON_THE_CPU if on_cpu else WITHOUT_TPU


@dataclass(frozen=True, slots=True)
class BenchNotes:
    """The end of a bench, with warnings for the user."""

    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchRequest(EngineRequest[BenchNotes]):
    """A request to measure models; each candidate is a part of the answer once it was measured."""

    function: ClassVar = "accel_engine.trained.bench.bench:bench"
    result: ClassVar = BenchNotes
    parts: ClassVar = (ExamplesDone, Candidate, LiveWindow)
    is_batch: ClassVar = False

    models: tuple[BenchedModel, ...]
    options: BenchOptions
    is_live: bool = False
    """Whether what was measured of a candidate so far comes meanwhile."""

    @property
    def environment(self) -> Mapping[str, str]:
        """See :attr:`BenchOptions.environment`."""
        return self.options.environment


REQUEST = BenchRequest
