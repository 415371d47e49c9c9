"""A convolutional classifier of sounds: log-mel spectrograms, and convolutions over time and frequency.

The Fourier transform is a convolution with Keras' initializer for it, so that all export formats can compute it, which
have no operation for it or only some of its sizes. ``keras.layers.MelSpectrogram`` makes a batch's values depend on its
loudest example besides.
"""

import keras
import numpy as np
import numpy.typing as npt
from keras import initializers, layers, ops

from accel_engine.models.data_description import DataDescription
from accel_engine.models.outputs import output

FRAMES_PER_SECOND = 40
"""A frame takes 25 ms, which is usual for speech; the next one begins two fifths of it later."""

FRAME_LENGTHS = (128, 1024)
"""Samples of a frame, at least and at most."""

MELS = 40

RANGE = 16.0
"""The difference to the loudest value of a sound, in the logarithm of the power, below which all is silence: 69 dB."""

FLOOR = 1e-8
"""Power of digital silence."""

MOMENTUM = 0.8
"""Momentum of batch normalization's moving averages, as in ``cnn``."""


def build(data: DataDescription) -> keras.Model:
    """Build the model. Its outputs do not depend on the loudness of a sound, and hardly on when it begins.

    Args:
        data: Sounds ``[samples, 1]``, of any length.

    Returns:
        An uncompiled model from sounds to :func:`~accel_engine.models.outputs.output`.
    """
    inputs = keras.Input(data.shape)
    x = _log_mels(inputs, data.sample_rate)
    x = layers.Reshape((-1, x.shape[-1], 1))(x)
    for filters, pool in ((16, 2), (32, 2), (48, (1, 2))):
        x = _normalized(layers.Conv2D(filters, 3, padding="same", use_bias=False)(x))
        x = layers.MaxPooling2D(pool, padding="same")(x)
    x = layers.Reshape((-1, x.shape[2] * x.shape[3]))(x)
    x = _normalized(layers.Conv1D(128, 3, padding="same", use_bias=False)(x))
    x = layers.Concatenate()([layers.GlobalMaxPooling1D()(x), layers.GlobalAveragePooling1D()(x)])
    x = layers.Dropout(0.2)(x)
    return keras.Model(inputs, output(x, data), name="sound-cnn")


def _normalized(x: keras.KerasTensor) -> keras.KerasTensor:
    return layers.ReLU()(layers.BatchNormalization(momentum=MOMENTUM)(x))


def _log_mels(sound: keras.KerasTensor, rate: int) -> keras.KerasTensor:
    """The logarithm of the power in frames and mel bands, standardised by moving averages, ``[batch, frames, bands]``.

    It is relative to the loudest value of each sound.
    """
    frame = min(max(rate // FRAMES_PER_SECOND, FRAME_LENGTHS[0]), FRAME_LENGTHS[1])
    window = np.hanning(frame + 2)[1:-1].tolist()
    parts = [_frozen_convolution(initializers.STFT(side, window, None), frame)(sound) for side in ("real", "imag")]
    power = ops.add(*(ops.square(part) for part in parts))
    mels = mel_matrix(frame // 2 + 1, min(MELS, frame // 4), rate)
    bands = layers.Dense(
        mels.shape[1],
        use_bias=False,
        kernel_initializer=initializers.Constant(mels.tolist()),
        trainable=False,
        dtype="float32",
        name="mels",
    )(power)
    decibels = ops.log(bands + FLOOR)
    loudest = ops.max(decibels, axis=(1, 2), keepdims=True)
    x = ops.maximum(decibels - loudest, -RANGE)
    return layers.BatchNormalization(momentum=0.9, center=False, scale=False, name="standardized_mels")(x)


def _frozen_convolution(initializer: initializers.Initializer, frame: int) -> keras.Layer:
    return layers.Conv1D(
        frame // 2 + 1,
        frame,
        strides=2 * frame // 5,
        padding="same",
        use_bias=False,
        kernel_initializer=initializer,
        trainable=False,
        dtype="float32",
        name=f"fourier_{initializer.side}",
    )


def mel_matrix(bins: int, bands: int, rate: int) -> npt.NDArray[np.float64]:
    """Triangular filters of equal widths on the mel scale of HTK, ``2595 log10(1 + f / 700)``.

    Args:
        bins: Frequencies of a spectrum, from 0 to half the rate.
        bands: Number of filters.
        rate: Samples per second.

    Returns:
        float64 ``[bins, bands]``.
    """
    mels = 2595 * np.log10(1 + np.linspace(0, rate / 2, bins)[:, np.newaxis] / 700)
    edges = np.linspace(0, mels[-1, 0], bands + 2)
    return np.maximum(0.0, 1 - np.abs(mels - edges[1:-1]) / edges[1])
