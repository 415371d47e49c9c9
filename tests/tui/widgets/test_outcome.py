"""The end of a run in words."""

from accel_tui.widgets.outcome import results


def test_training_and_validation_stand_apart() -> None:
    metrics = {"loss": 0.0313, "accuracy": 0.9911, "validation_loss": 0.052, "validation_accuracy": 0.9861}
    assert results(metrics) == "loss 0.0313, accuracy 0.9911; validation loss 0.0520, accuracy 0.9861"


def test_either_may_be_missing() -> None:
    assert results({"loss": 1.0}) == "loss 1.0000"
    assert results({"validation_loss": 1.0}) == "validation loss 1.0000"
    assert results({}) == ""
