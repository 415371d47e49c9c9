"""The means of an epoch's series, from chunks of its steps."""

import numpy as np
import pytest

from accel_engine.training.reporting.step_recorder import Means


def test_steps_count_by_their_examples() -> None:
    means = Means()
    means.add({"loss": np.float32([1, 2]), "learning_rate": np.float32([0.1, 0.1])}, 0.5, [8, 8])
    means.add({"loss": np.float32([6]), "accuracy": np.float32([0.5])}, 0.25, [4])

    assert means.value == pytest.approx({"loss": (8 + 16 + 24) / 20, "accuracy": 0.5})
    assert means.seconds == 0.75


def test_no_steps_have_no_means() -> None:
    assert (Means().value, Means().seconds) == ({}, 0.0)
