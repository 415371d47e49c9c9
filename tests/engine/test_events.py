import json
import math
import sys
from dataclasses import FrozenInstanceError, asdict, fields, is_dataclass, replace
from enum import Enum
from typing import Any

import pytest

from accel_engine.events import (
    KINDS,
    CheckpointSaved,
    CommandAnswered,
    DevicesFound,
    EpochEnded,
    Event,
    LearningRateChanged,
    MicroBatchesTried,
    Outcome,
    PartEnded,
    PartStarted,
    Phase,
    PhaseChanged,
    PlanChanged,
    Recovered,
    RunEnded,
    RunStarted,
    TensorFlowDevice,
    ThreadsChosen,
    TimeMeasured,
    Validated,
    Warned,
    WorkCounted,
    Worker,
    WorkersMet,
    XlaTried,
    from_stored,
    to_json_object,
    to_stored,
)
from example_events import model_built

EXAMPLES: tuple[Event, ...] = (
    RunStarted(
        time=1.5,
        run="abcd-cnn-digits",
        name="",
        plan={"model": "cnn", "devices": ["cpu:0"]},
        first_step=0,
        pid=7,
        host="here",
        versions={"tensorflow": "2.21.0"},
    ),
    PhaseChanged(time=2.0, phase=Phase.TRACING, detail="the step"),
    WorkersMet(
        time=2.2,
        workers=(
            Worker("worker 0", "a:1", "a", "abcd-cnn-digits"),
            Worker("worker 1", "b:1", "b", "efgh-cnn-digits"),
        ),
        reduction="ring",
    ),
    DevicesFound(time=2.5, devices=(TensorFlowDevice("CPU:0", "cpu"),), strategy="OneDeviceStrategy"),
    ThreadsChosen(time=2.6, threads=1, default=2, source="earlier runs", rate=128.0, default_rate=99.0),
    TimeMeasured(time=2.65, first_step=0, step=22, seconds=2.0, spent={"steps": 1.5, "input": 0.5}),
    PartStarted(time=2.7, part=2, name="fine-tuning", step=10, epoch=1),
    model_built(time=3.0),
    EpochEnded(time=4.0, epoch=1, step=22, metrics={"loss": 1.25}, seconds=0.5),
    Validated(time=5.0, epoch=1, step=22, metrics={"loss": 1.5, "accuracy": 0.5}, seconds=0.1),
    CheckpointSaved(time=6.0, epoch=1, step=22, path="checkpoints/22", seconds=0.2),
    LearningRateChanged(time=7.0, step=23, learning_rate=0.01),
    MicroBatchesTried(time=7.4, step=23, micro_batches=4, tried=4, whole=20.0, split=30.0, remembered=True),
    XlaTried(time=7.5, step=23, xla=True, plain=650.0, compiled=1430.0, remembered=False),
    WorkCounted(time=7.6, flops=1.2e9, peak=None, reason="the peak is not known"),
    CommandAnswered(time=8.0, command="pause", who="me@here", obeyed=True, answer="paused", step=23),
    Recovered(
        time=8.5,
        trouble="out of memory",
        step=22,
        failed_step=23,
        reason="no memory",
        action="2 micro-batches",
        changes={"micro_batches": 2},
    ),
    PlanChanged(
        time=8.6,
        step=22,
        changes={"validation_every": "500 steps"},
        before={"validation_every": "1 epoch"},
        reason="me@here",
    ),
    Warned(time=9.0, message="29 examples are left out"),
    PartEnded(
        time=9.5,
        part=2,
        name="fine-tuning",
        outcome=Outcome.FINISHED,
        step=23,
        epoch=1,
        seconds=7.0,
        metrics={"loss": 1.0},
    ),
    RunEnded(
        time=10.0,
        outcome=Outcome.STOPPED,
        steps=23,
        epochs=1,
        seconds=9.0,
        steps_per_second=40.0,
        metrics={"loss": 1.0},
        reason="asked",
    ),
)


def test_there_is_an_example_of_every_kind() -> None:
    assert {type(event) for event in EXAMPLES} == set(KINDS.values())


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind())
def test_stored_form_gives_the_same_event_back(event: Event) -> None:
    body = to_stored(event)
    assert "time" not in json.loads(body)
    assert from_stored(event.kind(), event.time, body) == event


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind())
def test_wire_form_is_one_flat_json_object(event: Event) -> None:
    wire = json.loads(json.dumps(to_json_object(event), allow_nan=False))
    assert wire["event"] == event.kind()
    assert wire["time"] == event.time
    assert "metrics" not in wire
    for name in asdict(event).keys() - {"metrics"}:
        assert name in wire


def test_metrics_stand_beside_the_fields_on_the_wire() -> None:
    wire = to_json_object(next(event for event in EXAMPLES if isinstance(event, Validated)))
    assert (wire["step"], wire["loss"], wire["accuracy"]) == (22, 1.5, 0.5)


def test_not_a_number_is_null_on_disk_and_wire_and_comes_back_as_itself() -> None:
    event = EpochEnded(time=0.0, epoch=1, step=1, metrics={"loss": math.nan, "norm": math.inf}, seconds=0.1)
    assert json.loads(to_stored(event))["metrics"] == {"loss": None, "norm": None}
    assert to_json_object(event)["loss"] is None
    back = from_stored("epoch_ended", 0.0, to_stored(event))
    assert isinstance(back, EpochEnded)
    assert math.isnan(back.metrics["loss"])


def extreme(value: Any, number: float, text: str) -> Any:
    """A value of the same form with other numbers and texts."""
    match value:
        case float():
            return number
        case str() if not isinstance(value, Enum):
            return text
        case tuple():
            return tuple(extreme(item, number, text) for item in value)
        case dict():
            return {key: extreme(item, number, text) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{item.name: extreme(getattr(value, item.name), number, text) for item in fields(value)})
    return value


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, sys.float_info.max, -sys.float_info.max, 5e-324])
@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind())
def test_whatever_is_stored_of_an_event_can_be_read(event: Event, number: float) -> None:
    stored = to_stored(extreme(event, number, "\N{SNOWMAN}" * 70_000))
    back = from_stored(event.kind(), event.time, stored)
    assert to_stored(back) == stored


def test_a_number_that_was_not_finite_comes_back_as_not_a_number() -> None:
    back = from_stored(
        "learning_rate_changed", 0.0, to_stored(LearningRateChanged(time=0.0, step=1, learning_rate=math.inf))
    )
    assert isinstance(back, LearningRateChanged)
    assert math.isnan(back.learning_rate)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + 309 * "0"])
def test_a_number_beyond_a_double_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match="too large"):
        from_stored("learning_rate_changed", 0.0, f'{{"step": 1, "learning_rate": {number}}}')


def test_what_a_later_program_adds_to_an_event_is_passed_over() -> None:
    assert from_stored("warned", 1.0, '{"message": "hm", "shade": "red"}') == Warned(time=1.0, message="hm")


def test_unknown_kind_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        from_stored("moon_landed", 1.0, "{}")


def test_events_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        EXAMPLES[0].time = 2.0  # type: ignore[misc]


def test_kinds_are_named_in_the_past_tense_of_the_class() -> None:
    assert set(KINDS) == {
        "run_started",
        "time_measured",
        "recovered",
        "plan_changed",
        "phase_changed",
        "workers_met",
        "devices_found",
        "part_started",
        "part_ended",
        "model_built",
        "epoch_ended",
        "validated",
        "checkpoint_saved",
        "learning_rate_changed",
        "micro_batches_tried",
        "threads_chosen",
        "xla_tried",
        "work_counted",
        "command_answered",
        "warned",
        "run_ended",
    }


def test_a_metric_does_not_hide_a_field_on_the_wire() -> None:
    wire = to_json_object(EpochEnded(time=1.0, epoch=1, step=20, metrics={"loss": 0.5, "step": 7.0}, seconds=2.0))

    assert (wire["loss"], wire["step"]) == (0.5, 20)
