"""What a search reads of real runs."""

from accel_engine.events import EpochEnded, Event, RunStarted, Validated
from accel_engine.run.history.history import History, fold
from accel_engine.search.definition import FIGURES
from accel_engine.search.engine_runs import MEASURES, measurements
from accel_engine.search.trial_runs import RunMetrics


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
