"""What a run does with a cure is compared with what it did before; from recorded series."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from accel_engine.advice.cures import cure_comparison
from accel_engine.advice.cures.apply_cure import AppliedCure, Method
from accel_engine.advice.cures.cure_comparison import LEARNING_STEPS, CureComparison
from accel_engine.advice.cures.cure_kinds import Quantity
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create


def trained(steps: int, batch: int, rise: float = 0.0) -> Path:
    """A run whose loss falls with the examples, in chunks of ten steps of a tenth of a second."""
    directory = create(Plan(model="mlp"))
    with closing(RunWriter(directory)) as writer:
        writer.begin()
        for first in range(0, steps, 10):
            losses = 2 * np.exp(-np.arange(first, first + 10) * batch / 6400) + rise
            writer.write_chunk(first, first / 10, first / 10 + 1, {"loss": losses.astype(np.float32)})
    return directory


@pytest.mark.parametrize(("rise", "is_worse"), [(0.0, False), (1.0, True)])
def test_a_new_run_is_compared_after_as_many_examples(
    monkeypatch: pytest.MonkeyPatch, rise: float, is_worse: bool
) -> None:
    source, new = trained(400, 32), trained(1600, 8, rise)
    monkeypatch.setattr(cure_comparison, "_batch", lambda directory: 32 if directory == source else 8)
    cure = AppliedCure(
        new, source, Method.NEW_RUN, {"batch_size": 8}, {"batch_size": 32}, 0, "", True, judged_by=Quantity.LEARNING
    )
    comparison = CureComparison(cure)
    found = comparison.compare()
    assert found is not None
    assert found.is_worse is is_worse
    assert comparison.seconds_needed() == pytest.approx(0.1 * 2 * LEARNING_STEPS * 4)
