"""Figures of an ended run that are objectives: time, memory and latency."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from accel_engine.devices.device_types import Sample
from accel_engine.events import EpochEnded
from accel_engine.inference.candidate import Candidate
from accel_engine.run import RunReader
from accel_engine.run.reading.reader import drop_discarded
from accel_engine.run.store.sample_packing import SampleUnpacker

LATENCY_SECONDS = 2.0
"""How long the latency is measured."""


def training_seconds(directory: Path) -> float | None:
    """Seconds of training over all epochs, without validation and checkpoints; ``None`` before the first epoch."""
    with closing(RunReader(directory, steps=False)) as reader:
        events = drop_discarded(reader.poll().events)
    seconds = [event.seconds for event in events if isinstance(event, EpochEnded)]
    return sum(seconds) if seconds else None


def peak_memory(directory: Path) -> float | None:
    """The most bytes in use of an accelerator; without one, of the engine's process. ``None`` if unknown."""
    with closing(RunReader(directory, steps=False)) as reader:
        batches = reader.sample_batches(SampleUnpacker())
        samples = [sample for _, batch in batches for sample in batch]
    accelerators = [sample for sample in samples if not sample.device.startswith("cpu")]
    found = _values(accelerators, "memory_used") if accelerators else _values(samples, "engine_memory")
    return max(found, default=None)


def latency(directory: Path) -> float | None:
    """Median seconds of a prediction for one example, measured in a process of its own; ``None`` if that fails.

    Raises:
        RunError: The model cannot be measured.
    """
    from accel_engine.process.inference_bench import InferenceBench  # seldom needed
    from accel_engine.requests.bench_models import BenchOptions

    options = BenchOptions(
        scenario="single-stream", batch_sizes=(1,), seconds=LATENCY_SECONDS, xla=(False,), metrics=False
    )
    found: list[object] = []
    InferenceBench([directory], options).measure(found.append)
    medians = [
        each.percentiles["p50"].value for each in found if isinstance(each, Candidate) and "p50" in each.percentiles
    ]
    return min(medians, default=None)


def _values(samples: list[Sample], name: str) -> Iterator[float]:
    for sample in samples:
        reading = sample.readings.get(name)
        if reading is not None and reading.value is not None:
            yield reading.value
