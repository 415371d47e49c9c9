"""Makes small spectrograms of sounds."""

from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.run.diagnostics.views import MAX_SIDE, Spectrogram

FRAME = 512
"""Samples of a frame; fewer for short sounds."""

DECIBELS = 80.0
"""Range of the levels below the loudest."""


def spectrogram(sound: npt.NDArray[Any], sample_rate: int) -> Spectrogram:
    """Power of a sound by frequency and time: Hann windows that overlap by half, averaged to 64 x 64.

    Args:
        sound: Samples ``[samples]`` or ``[samples, channels]``, whose first channel is used; NaN is silence.
        sample_rate: Samples per second; 0 if unknown.
    """
    samples = np.nan_to_num(sound.reshape(len(sound), -1)[:, 0].astype(np.float32))
    frame = min(FRAME, max(2, len(samples) // 2 * 2))
    starts = np.arange(0, max(len(samples) - frame, 0) + 1, max(1, frame // 2))
    columns = min(MAX_SIDE, len(starts))
    edges = np.linspace(0, len(starts), columns + 1).astype(np.intp)
    window = np.hanning(frame).astype(np.float32)
    padded = np.pad(samples, (0, max(0, frame - len(samples))))
    bands = np.linspace(0, frame // 2 + 1, min(MAX_SIDE, frame // 2 + 1) + 1).astype(np.intp)[:-1]
    sizes = np.diff([*bands, frame // 2 + 1])
    power = np.empty((len(bands), columns), np.float32)
    for column in range(columns):  # a minute of sound would be hundreds of megabytes at once
        frames = padded[starts[edges[column] : edges[column + 1], np.newaxis] + np.arange(frame)] * window
        mean = np.mean(np.abs(np.fft.rfft(frames, axis=1)) ** 2, axis=0)
        power[:, column] = np.add.reduceat(mean, bands) / sizes
    loudest = max(float(power.max()), 1e-20)
    levels = 10 * np.log10(np.maximum(power / loudest, 1e-30)) / DECIBELS + 1
    return Spectrogram(
        np.rint(np.clip(levels, 0, 1) * 255).astype(np.uint8),
        len(samples) / (sample_rate or 1),
        sample_rate / 2,
        DECIBELS,
    )
