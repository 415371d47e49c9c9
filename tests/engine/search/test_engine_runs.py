"""What a search reads of real runs."""

from contextlib import closing
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import (
    CommandAnswered,
    EpochEnded,
    Event,
    Outcome,
    PlanChanged,
    RunEnded,
    RunStarted,
    Validated,
)
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from accel_engine.run.history.history import History, fold
from accel_engine.search.definition import FIGURES
from accel_engine.search.engine_runs import MEASURES, DirectStarter, EngineRuns, changed_from, measurements
from accel_engine.search.trial import Trial, TrialState
from accel_engine.search.trial_runs import RunMetrics, reason_after, state_after

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


def rate_set(step: int, *, obeyed: bool = True) -> Event:
    return CommandAnswered(
        time=1.0, command="learning_rate", who="ann@box", obeyed=obeyed, answer="the learning rate is 0.5", step=step
    )


def test_a_trial_that_a_user_changes_counts_with_what_it_reached_before() -> None:
    directory = create(Plan(), study="s", trial=0)
    runs = EngineRuns(DirectStarter(), ())
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        for event in (epoch(1, 0.9), rate_set(10, obeyed=False), epoch(2, 0.8)):
            writer.write_event(event)
        assert [each.step for each in runs.observe(directory.name).measurements] == [10, 20]
        for event in (rate_set(20), epoch(3, 0.1)):
            writer.write_event(event)
        writer.end(RunEnded(time=4.0, outcome=Outcome.FINISHED, steps=30, epochs=3, seconds=1.0))
    found = runs.observe(directory.name)
    assert [each.step for each in found.measurements] == [10, 20]
    trial = Trial(0, directory.name, TrialState.RUNNING, {"learning_rate": 0.01})
    assert state_after(trial, found) is TrialState.STOPPED
    said = "changed by the user after step 20: only what it reached before counts"
    assert reason_after(trial, found, TrialState.STOPPED) == said


def test_a_changed_plan_counts_no_longer_also_after_a_later_start() -> None:
    change = PlanChanged(time=1.0, step=20, changes={"clip_norm": 1.0}, before={"clip_norm": None})
    assert changed_from([started(0), epoch(1, 0.9)]) is None
    assert changed_from([started(0), change, started(20), rate_set(30)]) == 20
    assert changed_from([started(10)], 20) == 10


def test_a_trial_that_validates_or_saves_at_other_steps_counts_to_its_end() -> None:
    for name in ("validation_every", "checkpoint_every"):
        change = PlanChanged(time=1.0, step=20, changes={name: "500 steps"}, before={name: "1 epoch"})
        assert changed_from([started(0), change, epoch(3, 0.1)]) is None


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
