"""What an example shows."""

import numpy as np

from accel_engine.run.diagnostics.views import Spectrogram


def test_a_spectrogram_has_a_range_of_80_decibels() -> None:
    assert Spectrogram(np.zeros((2, 2), np.uint8), 1.0, 0.0).decibels == 80.0
