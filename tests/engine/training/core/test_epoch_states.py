"""The states of an epoch's metrics."""

import numpy as np

from accel_engine.training.core.epoch_states import EpochStates


def test_states_of_other_metrics_in_a_checkpoint_are_left() -> None:
    states = EpochStates()
    states.restore([3.0, 10.0])  # one value, which would be added to each of two
    states.add(np.array([1.0, 2.0]), 2)
    states.add(np.array([1.0, 2.0]), 1)

    assert states.steps == 3
    assert states.sums.tolist() == [2.0, 4.0]
