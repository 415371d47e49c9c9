"""What a search reads of real runs."""

from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import EpochEnded, Event, RunStarted, Validated
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from accel_engine.run.history.history import History, fold
from accel_engine.search.definition import FIGURES
from accel_engine.search.engine_runs import MEASURES, measurements
from accel_engine.search.trial_runs import RunMetrics

GIB = 1 << 30


def epoch(number: int, loss: float) -> Event:
    return EpochEnded(time=float(number), epoch=number, step=number * 10, metrics={"loss": loss}, seconds=1.0)


def validation(step: int, accuracy: float, *, by_command: bool = False) -> Event:
    metrics = {"accuracy": accuracy}
    return Validated(time=step / 10, epoch=step // 10, step=step, metrics=metrics, seconds=1.0, by_command=by_command)


def started(step: int) -> Event:
    fields = dict.fromkeys(RunStarted.__dataclass_fields__)
    return RunStarted(**{**fields, "time": 0.0, "first_step": step, "plan": {}})


def test_metrics_of_training_and_validation_of_one_step_are_one_measurement() -> None:
    events = [epoch(1, 0.9), validation(10, 0.5), validation(15, 0.6, by_command=True), epoch(2, 0.8)]
    assert measurements(fold(History(), events)) == (
        RunMetrics(1, 10, 1.0, {"loss": 0.9, "validation_accuracy": 0.5}),
        RunMetrics(2, 20, 2.0, {"loss": 0.8}),
    )


def test_what_was_discarded_when_a_run_was_continued_does_not_count() -> None:
    events = [epoch(1, 0.9), epoch(2, 0.8), started(10), epoch(2, 0.7)]
    assert [each.metrics["loss"] for each in measurements(fold(History(), events))] == [0.9, 0.7]


def test_each_figure_is_measured() -> None:
    assert MEASURES.keys() == FIGURES.keys()


@pytest.mark.parametrize(("gpu", "most"), [({"allocated_peak": 3.0 * GIB}, 3.0 * GIB), ({}, 2.0 * GIB)])
def test_memory_is_what_the_run_has_used(home: Path, gpu: dict[str, float], most: float) -> None:
    directory = create(Plan())
    memory = {"cpu:0": {"engine_memory": 2.0 * GIB}, "gpu:0": {"memory_used": 5.0 * GIB, **gpu}}
    samples = [
        Sample(1.0, device, {name: Reading(value, "B") for name, value in readings.items()})
        for device, readings in {**memory, "gpu:1": {"memory_used": 9.0 * GIB}}.items()
    ]
    with closing(RunWriter(directory)) as writer:
        writer.write_samples(samples)
    assert MEASURES["memory"](directory) == most
