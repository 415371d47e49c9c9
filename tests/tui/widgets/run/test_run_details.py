"""What the plan came to, in words."""

from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.events import DevicesFound, MicroBatchesTried, TensorFlowDevice, ThreadsChosen, Validated, WorkCounted
from accel_engine.run.engine.status import RunInfo, Status
from accel_engine.run.store.annotations import Annotations
from accel_tui.cli.event_text import format_event
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.run_details import RunDetails
from example_events import model_built


def test_what_a_step_computes_and_what_the_devices_could() -> None:
    def said(**values: object) -> list[str]:
        work = WorkCounted(**{"time": 1.0, **values})
        lines = RunDetails().build(RunState(work=work)).plain.splitlines()
        assert max(map(len, lines)) <= 41  # which there is room for beside the charts
        return [" ".join(line.split()) for line in lines]

    assert said(flops=7.7575e9, peak=312e12, source="NVIDIA A100 datasheet, bfloat16") == [
        "FLOPs per step 7.76 GFLOP",
        "peak 312 TFLOP/s, NVIDIA A100",
        "datasheet, bfloat16",
    ]
    assert said(flops=7.7575e9, peak=None, reason="no peak is known") == [
        "FLOPs per step 7.76 GFLOP",
        "peak no peak is known",
    ]
    assert said(flops=None, peak=1e12, reason="it loops") == ["FLOPs per step unknown: it loops"]


def test_where_a_tpu_is() -> None:
    cores = tuple(TensorFlowDevice(f"TPU:{index}", "tpu") for index in range(2))
    found = DevicesFound(time=1.0, devices=cores, strategy="TPUStrategy", address="grpc://10.0.0.2:8470")
    state = RunState(devices=found)
    lines = [" ".join(line.split()) for line in RunDetails().build(state).plain.splitlines()]
    assert lines[-2:] == ["devices TPU:0, TPU:1", "address grpc://10.0.0.2:8470"]
    assert format_event(found, state) == "training on TPU:0, TPU:1 at grpc://10.0.0.2:8470 (TPUStrategy)"


@pytest.mark.parametrize(
    ("taken", "words"), [(4, "4: 105 steps/s, 80.0 without"), (1, "off: 80.0 steps/s, 105 with 4")]
)
def test_what_trying_micro_batches_has_shown(taken: int, words: str) -> None:
    tried = MicroBatchesTried(time=2.0, step=5, micro_batches=taken, tried=4, whole=80.0, split=105.0, remembered=False)

    told = RunDetails().build(RunState(built=model_built(), micro_batches=tried)).plain

    assert words in " ".join(told.split())


@pytest.mark.parametrize(
    ("rates", "words"),
    [((128.0, 99.0), "threads 1 per operation: 128 steps/s, 99.0 with 2"), ((0.0, 0.0), "threads 1 per operation")],
)
def test_the_number_of_threads_if_it_is_not_tensorflows_own(rates: tuple[float, float], words: str) -> None:
    chosen = ThreadsChosen(time=2.0, threads=1, default=2, source="plan", rate=rates[0], default_rate=rates[1])

    assert lines_of(RunState(threads=chosen)) == words
    assert "threads" not in lines_of(RunState(built=model_built()))


def test_what_a_script_does_not_tell_of_its_model_is_unknown() -> None:
    built = replace(model_built(), parameters=None, trainable=None, layers=None, xla=None, optimizer="")
    lines = [" ".join(line.split()) for line in RunDetails().build(RunState(built=built)).plain.splitlines()]

    assert "parameters unknown" in lines
    assert not any(line.startswith(("XLA", "optimizer")) for line in lines)
    assert format_event(built, RunState()).startswith("parameters unknown; ")
    assert not format_event(built, RunState()).endswith("; ")


def lines_of(state: RunState) -> str:
    """The details, with blanks for ends of lines."""
    return " ".join(RunDetails().build(state).plain.split())


def test_a_run_without_classes_says_what_it_learns_from_what() -> None:
    built = model_built(classes=0, input_shape=None, inputs="age: float32, city: string", outputs="float32 1",
        task="regression", monitor="validation_mae")  # fmt: skip
    text = lines_of(RunState(built=built))
    for words in ("age: float32", "city: string", "float32 1", "regression", "validation mae"):
        assert words in text
    assert "classes" not in text


def test_a_dimension_of_any_size_is_a_question_mark() -> None:
    assert "?x16" in lines_of(RunState(built=model_built(input_shape=(None, 16))))


def test_how_much_of_the_patience_is_used() -> None:
    info = RunInfo("r", Path("r"), None, {"patience": 5}, 0.0, "h", 1, Status.RUNNING, Annotations())
    validated = Validated(time=0.0, epoch=3, step=9, metrics={"loss": 0.5}, seconds=0.1, waited=2)
    state = RunState(info=info, built=model_built(monitor="validation_loss"), validations=(validated,))
    assert "early stopping 2 of 5 validations without improvement" in " ".join(RunDetails().build(state).plain.split())

    other = replace(state, info=replace(info, plan_values={}))
    assert "early stopping" not in RunDetails().build(other).plain


def test_what_a_prediction_that_has_learned_nothing_reaches() -> None:
    event = Validated(
        time=1.0,
        epoch=1,
        step=5,
        metrics={"loss": 0.5},
        seconds=1.0,
        baseline={"mean_absolute_error": 12345.6, "r2_score": -0.01},
        baseline_name="last known value",
    )
    told = RunDetails().build(RunState(validations=(event,))).plain
    assert "baseline last known value: mean absolute error 12.35k, r2 score -0.0100" in " ".join(told.split())
