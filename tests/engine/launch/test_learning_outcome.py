"""How runs learn with a changed plan; from recorded series, without engines."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.events import Outcome, RunEnded, Validated
from accel_engine.launch.learning_outcome import compare_continued, compare_runs
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from example_events import model_built


def trained(
    losses: Sequence[float] | np.ndarray, *, batch: int = 64, validations: Sequence[float] = (), **others: Any
) -> Path:
    """An ended run with these losses of steps, and losses of validation after each epoch."""
    directory = create(Plan(model="mlp"))
    series = {"loss": losses, **others}
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        writer.write_event(model_built(global_batch=batch))
        writer.write_chunk(0, 0.0, 1.0, {name: np.array(values, np.float32) for name, values in series.items()})
        for epoch, loss in enumerate(validations, 1):
            writer.write_event(Validated(time=1.0, epoch=epoch, step=epoch, metrics={"loss": loss}, seconds=0.1))
        writer.end(RunEnded(time=1.0, outcome=Outcome.FINISHED, steps=len(losses), epochs=0, seconds=1.0))
    return directory


def falling(steps: int, pace: float) -> np.ndarray:
    """Losses that fall in proportion to the steps."""
    return 2.0 - pace * np.arange(steps) + 0.001 * np.random.default_rng(0).normal(size=steps)


def test_runs_of_other_batches_are_compared_after_as_many_examples() -> None:
    large, small = trained(falling(40, 0.01), batch=640), trained(falling(400, 0.004), batch=64)
    found = compare_runs(large, small, {"batch_size": 64})
    assert found is not None
    assert found.is_better
    assert found.after == pytest.approx(2.0 - 0.004 * 300, abs=0.01)
    back = compare_runs(small, large, {"batch_size": 640})
    assert back is not None
    assert back.is_worse


def test_validations_of_the_same_epochs_come_before_losses_of_steps() -> None:
    source = trained(falling(300, 0.006), validations=[1.0, 1.2, 1.4, 1.6, 1.8])
    decayed = trained(falling(300, 0.004), validations=[1.0, 1.0, 1.1, 1.2])
    found = compare_runs(source, decayed, {"weight_decay": 0.01})
    assert found is not None
    assert (found.unit, found.is_worse) == ("validation loss", False)
    assert (found.before, found.after) == pytest.approx((1.3, 1.075))
    assert compare_runs(trained(falling(300, 0.006)), trained(falling(300, 0.004)), {"weight_decay": 0.01}) is None


def test_values_of_another_loss_are_not_compared() -> None:
    source = trained(falling(300, 0.004), accuracy=np.linspace(0.2, 0.8, 300))
    smooth = trained(falling(300, 0.001), accuracy=np.linspace(0.2, 0.9, 300))
    found = compare_runs(source, smooth, {"label_smoothing": 0.1})
    assert found is not None
    assert (found.unit, found.is_better) == ("accuracy", True)
    assert compare_runs(source, smooth, {"class_weight": ("balanced",)}) is None


@pytest.mark.parametrize(("pace", "is_better"), [(0.001, False), (0.003, True)])
def test_a_loss_that_falls_as_before_is_no_gain(pace: float, is_better: bool) -> None:
    before = falling(200, 0.001)
    after = before[-1] - pace * np.arange(1, 401) + 0.001 * np.random.default_rng(1).normal(size=400)
    found = compare_continued(trained([*before, *after]), 200, {"learning_rate": 0.1})
    assert found is not None
    assert (found.is_better, found.is_worse) == (is_better, False)


def test_finite_losses_after_others_are_a_gain() -> None:
    found = compare_continued(trained([float("nan")] * 200 + [1.0] * 400), 200, {"learning_rate": 0.1})
    assert found is not None
    assert found.is_better
