"""The end of a run in words."""

from dataclasses import replace
from pathlib import Path

import pytest

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import ModelBuilt, Outcome, RunEnded, RunStarted, Validated
from accel_engine.run import RunInfo, Status
from accel_tui.cli.event_text import format_event
from accel_tui.run_state.device_meter import record_device
from accel_tui.run_state.state import RunState
from accel_tui.widgets.run.phase_line import phase
from accel_tui.widgets.run.run_outcome import RunOutcome, is_no_better, results
from accel_tui.widgets.styled_text import plain_spans


def test_training_and_validation_stand_apart() -> None:
    metrics = {"loss": 0.0313, "accuracy": 0.9911, "validation_loss": 0.052, "validation_accuracy": 0.9861}
    assert results(metrics) == "Last epoch: loss 0.0313, accuracy 0.9911; validation: loss 0.0520, accuracy 0.9861"


def test_either_may_be_missing() -> None:
    assert results({"loss": 1.0}) == "Last epoch: loss 1.0000"
    assert results({"validation_loss": 1.0}) == "Validation: loss 1.0000"
    assert results({}) == ""
    assert results({"validation_f1_score": 1.0, "gradient_norm": 2.0}) == (
        "Last epoch: gradient norm 2.0000; validation: f1 score 1.0000"
    )


def test_the_end_says_how_well_the_devices_were_used() -> None:
    ended = RunEnded(
        time=9.0, outcome=Outcome.FINISHED, steps=600, epochs=2, seconds=83.0, steps_per_second=10.0, metrics={}
    )
    head = "Finished after 600 steps and 2 epochs in 1:23, 10.0 steps/s"
    assert RunOutcome().build(RunState(ended=ended)).plain == head
    used = replace(ended, flops_per_second=12.3e9, mfu=0.41)
    assert RunOutcome().build(RunState(ended=used)).plain == f"{head}, 12.3 GFLOP/s, MFU 41%"
    assert format_event(used, RunState()) == "finished at step 600 after 1:23, 10.0 steps/s, 12.3 GFLOP/s, MFU 41%"


def test_the_end_says_which_weights_the_model_has() -> None:
    ended = RunEnded(time=9.0, outcome=Outcome.FINISHED, steps=600, epochs=2, seconds=83.0, metrics={})
    state = RunState(ended=ended, model=Path("runs/k7m2/model.keras"))
    assert RunOutcome().build(state).plain.splitlines()[-1] == "Trained model: runs/k7m2/model.keras"
    best = replace(state, ended=replace(ended, model_step=400))
    said = RunOutcome().build(best).plain.splitlines()[-1]
    assert said == "Trained model, of its best step, 400: runs/k7m2/model.keras"


def test_the_time_of_a_run_that_went_on_is_that_of_all_its_engines_and_of_the_last() -> None:
    started = RunStarted(time=1.0, run="k7m2", name="", plan={}, first_step=141, pid=1, host="h", versions={})
    ended = RunEnded(
        time=9.0, outcome=Outcome.STOPPED, steps=229, epochs=10, seconds=9.0, steps_per_second=53.0, metrics={}
    )
    info = RunInfo("k7m2", Path("k7m2"), None, {}, created=0.0, host="h", pid=1, status=Status.STOPPED)
    state = RunState(info=info, started=started, ended=ended, earlier_seconds=264.0)
    said = RunOutcome().build(state).plain
    assert said == "Stopped after 229 steps and 10 epochs in 4:33, 0:09 since step 141, 53.0 steps/s"
    assert plain_spans(phase(state, now=10.0)) == "■ stopped  after 4:33, 0:09 since step 141"
    assert format_event(ended, state) == "stopped at step 229 after 4:33, 0:09 since step 141, 53.0 steps/s"


def test_who_has_not_read_of_earlier_engines_is_told_the_time_of_the_last() -> None:
    started = RunStarted(time=1.0, run="k7m2", name="", plan={}, first_step=141, pid=1, host="h", versions={})
    ended = RunEnded(
        time=9.0, outcome=Outcome.STOPPED, steps=229, epochs=10, seconds=9.0, steps_per_second=53.0, metrics={}
    )
    info = RunInfo("k7m2", Path("k7m2"), None, {}, created=0.0, host="h", pid=1, status=Status.STOPPED)
    state = RunState(info=info, started=started, ended=ended)
    assert RunOutcome().build(state).plain.endswith("10 epochs, 0:09 since step 141, 53.0 steps/s")
    assert plain_spans(phase(state, now=10.0)) == "■ stopped  0:09 since step 141"
    assert format_event(ended, state) == "stopped at step 229, 0:09 since step 141, 53.0 steps/s"


@pytest.mark.parametrize(("used", "told"), [(15.5, True), (14.0, False), (None, False)])
def test_a_lost_run_tells_that_memory_was_short_where_it_was(used: float | None, told: bool) -> None:
    memory = Reading.missing("not told", "B") if used is None else Reading(used * 2**30, "B")
    sample = Sample(9.0, "cpu:0", {"memory_used": memory, "memory_total": Reading(16.0 * 2**30, "B")})
    info = RunInfo("k7m2", Path("k7m2"), None, {}, created=0.0, host="h", pid=1, status=Status.LOST)
    said = RunOutcome().build(RunState(info=info, step=7, meters=record_device({}, [sample]))).plain
    assert said.startswith("Lost: the training process exited unexpectedly at step 7\n")
    assert ("The machine's memory was 97% full at the last reading" in said) is told


@pytest.mark.parametrize(
    ("reached", "said", "is_chance"),
    [
        (0.9, "Best validation accuracy: 0.9000 at step 300; most frequent class: cat reaches 0.2500", False),
        (
            0.25,
            "Best validation accuracy: 0.2500 at step 300, which is no better: most frequent class: cat reaches 0.2500",
            True,
        ),
    ],
)
def test_the_best_value_stands_beside_what_a_constant_prediction_reaches(
    reached: float, said: str, is_chance: bool
) -> None:
    ended = RunEnded(time=9.0, outcome=Outcome.FINISHED, steps=600, epochs=2, seconds=83.0, metrics={})
    validated = Validated(
        time=9.0,
        epoch=1,
        step=300,
        metrics={"accuracy": reached},
        seconds=0.1,
        baseline={"accuracy": 0.25},
        baseline_name="most frequent class: cat",
    )
    info = RunInfo("k7m2", Path("k7m2"), None, {}, 0.0, "h", 1, Status.FINISHED)
    state = RunState(info=info, ended=ended, validations=(validated,), validation={"accuracy": ((300, reached),)})
    assert RunOutcome().build(state).plain.splitlines()[-1] == said
    assert is_no_better(state) is is_chance
    assert phase(state, 9.0)[0] == ("✓ finished", "bold $warning" if is_chance else "bold $success")


@pytest.mark.parametrize(
    ("reached", "examples", "validations", "task", "may_be_chance"),
    [
        (0.3, 100, 1, "", True),
        (0.3, 100, 1, "classification", True),
        (0.3, 100, 1, "segmentation", False),  # pixels, of which there are more than images
        (0.3, 2000, 1, "", False),
        (0.275, 2000, 1, "", False),
        (0.275, 2000, 180, "", True),
    ],
)
def test_the_best_of_few_or_many_validations_may_be_chance(
    reached: float, examples: int, validations: int, task: str, may_be_chance: bool
) -> None:
    metrics, baseline = {"accuracy": reached}, {"accuracy": 0.25}
    validated = Validated(time=9.0, epoch=1, step=300, metrics=metrics, seconds=0.1, baseline=baseline)
    built = ModelBuilt(
        time=0.0,
        parameters=15,
        trainable=15,
        layers=1,
        input_shape=(1,),
        classes=4,
        examples=examples,
        validation_examples=examples,
        epochs=2,
        steps_per_epoch=300,
        global_batch=8,
        per_replica_batch=8,
        dropped_examples=0,
        replicas=1,
        optimizer="Adam",
        loss="crossentropy",
        series=("loss",),
        precision="float32",
        xla=False,
        feed="",
        task=task,
    )
    ended = RunEnded(time=9.0, outcome=Outcome.FINISHED, steps=600, epochs=2, seconds=83.0, metrics={})
    info = RunInfo("k7m2", Path("k7m2"), None, {}, 0.0, "h", 1, Status.FINISHED)
    points = (*((step, 0.25) for step in range(1, validations)), (300, reached))
    state = RunState(info=info, built=built, ended=ended, validations=(validated,), validation={"accuracy": points})
    assert is_no_better(state) is may_be_chance
    assert ("may be chance" in RunOutcome().build(state).plain) is may_be_chance


def test_a_regression_is_compared_by_its_error_as_the_mean_has_no_loss() -> None:
    ended = RunEnded(time=9.0, outcome=Outcome.FINISHED, steps=600, epochs=2, seconds=83.0, metrics={})
    baseline = {"mean_absolute_error": 7.5, "r2_score": 0.0}
    metrics = {"loss": 4.0, "mean_absolute_error": 1.5, "r2_score": 0.75}
    validated = Validated(
        time=9.0, epoch=1, step=300, metrics=metrics, seconds=0.1, baseline=baseline, baseline_name="mean"
    )
    info = RunInfo("k7m2", Path("k7m2"), None, {"monitor_mode": "min"}, 0.0, "h", 1, Status.FINISHED)
    points = {name: ((300, value),) for name, value in metrics.items()}
    state = RunState(info=info, ended=ended, validations=(validated,), validation=points)
    said = "Best validation loss: 4.0000 at step 300, with MAE 1.5000; mean reaches 7.5000"
    assert RunOutcome().build(state).plain.splitlines()[-1] == said
    assert not is_no_better(state)
