"""The rates of a schedule at many steps."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.recording.learning_rates import RateSchedule, _vectorized


def test_a_schedule_that_gives_other_rates_for_an_array_is_not_called_with_one() -> None:
    def schedule(iteration: Any) -> Any:
        return 0.001 * keras.ops.cast(iteration - keras.ops.min(iteration) + 1, "float32")

    rates = RateSchedule(schedule).rates(np.arange(5))

    np.testing.assert_allclose(rates, np.full(5, 0.001), rtol=1e-6)


def test_nothing_is_vectorized_in_eager_mode() -> None:
    tf.config.run_functions_eagerly(True)
    try:
        with pytest.raises(RuntimeError, match="in eager mode"):
            _vectorized(lambda iteration: iteration, "int64")
    finally:
        tf.config.run_functions_eagerly(False)
