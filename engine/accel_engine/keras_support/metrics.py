"""Metrics that Keras does not have."""

from typing import Any

import keras


class MixedBinaryAccuracy(keras.metrics.BinaryAccuracy):  # type: ignore[misc]
    """Binary accuracy, also for mixed targets: one above 0.5 counts as 1."""

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Add a batch; see :class:`keras.metrics.BinaryAccuracy`."""
        rounded = keras.ops.cast(keras.ops.cast(y_true, "float32") > 0.5, "float32")
        return super().update_state(rounded, y_pred, sample_weight)
