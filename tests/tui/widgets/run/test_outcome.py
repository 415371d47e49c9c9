"""The end of a run in words."""

from dataclasses import replace

from accel_engine.events import Outcome, RunEnded
from accel_tui.cli.wording import worded
from accel_tui.run.state import RunState
from accel_tui.widgets.run.outcome import RunOutcome, results


def test_training_and_validation_stand_apart() -> None:
    metrics = {"loss": 0.0313, "accuracy": 0.9911, "validation_loss": 0.052, "validation_accuracy": 0.9861}
    assert results(metrics) == "loss 0.0313, accuracy 0.9911; validation loss 0.0520, accuracy 0.9861"


def test_either_may_be_missing() -> None:
    assert results({"loss": 1.0}) == "loss 1.0000"
    assert results({"validation_loss": 1.0}) == "validation loss 1.0000"
    assert results({}) == ""
    assert results({"validation_f1_score": 1.0, "gradient_norm": 2.0}) == (
        "gradient norm 2.0000; validation f1 score 1.0000"
    )


def test_the_end_says_how_well_the_devices_were_used() -> None:
    ended = RunEnded(
        time=9.0, outcome=Outcome.FINISHED, steps=600, epochs=2, seconds=83.0, steps_per_second=10.0, metrics={}
    )
    plain = "Finished after 600 steps and 2 epochs in 1:23, 10.0 steps/s"
    assert RunOutcome().words(RunState(ended=ended)).plain == plain
    used = replace(ended, flops_per_second=12.3e9, mfu=0.41)
    assert RunOutcome().words(RunState(ended=used)).plain == f"{plain}, 12.3 GFLOP/s, 41% of peak"
    assert worded(used, RunState()) == "finished at step 600 after 1:23, 10 steps/s, 12.3 GFLOP/s, 41% of peak"
