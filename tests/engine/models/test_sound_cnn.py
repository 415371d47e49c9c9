from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.errors import ModelError
from accel_engine.models.build import build
from accel_engine.models.data_description import DataDescription
from accel_engine.models.sound_cnn import FLOOR, mel_matrix

from .descriptions import labelled


def sounds(samples: int | None, rate: int, classes: int = 3) -> DataDescription:
    return replace(labelled((samples, 1), classes), kind="audio", sample_rate=rate)


@pytest.mark.parametrize(("rate", "bins"), [(8000, 101), (16_000, 201)])
def test_mel_bands_are_those_of_keras(rate: int, bins: int) -> None:
    layer = keras.layers.MelSpectrogram()
    expected = layer.linear_to_mel_weight_matrix(40, bins, rate, 0.0, rate / 2)
    np.testing.assert_allclose(mel_matrix(bins, 40, rate), expected, atol=1e-3)


def test_features_are_the_power_of_a_fourier_transform_in_mel_bands() -> None:
    model = build("sound-cnn", sounds(1600, 8000))
    sound = np.random.default_rng(0).normal(0, 0.1, (1, 1600, 1)).astype(np.float32)
    bands = keras.Model(model.input, model.get_layer("mels").output)(sound).numpy()
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(sound[0, :, 0], 60), 200)[::80] * np.hanning(202)[1:-1]
    expected = np.abs(np.fft.rfft(frames)) ** 2 @ mel_matrix(101, 40, 8000)
    assert bands.shape == (1, 20, 40)
    np.testing.assert_allclose(bands[0], expected, rtol=1e-3, atol=1e-5)
    assert (expected > 1000 * FLOOR).all()


def test_loudness_and_the_rest_of_a_batch_change_nothing() -> None:
    model = build("sound-cnn", sounds(4000, 8000))
    sound = np.random.default_rng(0).normal(0, 0.01, (2, 4000, 1)).astype(np.float32)
    alone, louder, beside = (model(x).numpy()[0] for x in (sound[:1], 50 * sound[:1], sound * [[[1]], [[100]]]))
    np.testing.assert_allclose(alone, louder, atol=1e-3)
    np.testing.assert_allclose(alone, beside, atol=1e-6)
    assert np.isfinite(model(np.zeros((1, 4000, 1), np.float32)).numpy()).all()


@pytest.mark.parametrize(("samples", "rate"), [(50, 800), (1, 8000), (5000, 44_100), (None, 16_000), (9000, 192_000)])
def test_it_takes_sounds_of_all_lengths_and_rates(samples: int | None, rate: int) -> None:
    with tf.Graph().as_default():
        model = build("sound-cnn", sounds(samples, rate))
        assert model.output_shape == (None, 3)
        assert sum(np.prod(weight.shape) for weight in model.non_trainable_weights) < 1.2e6
        bands = model.get_layer("mels").kernel
    keras.backend.clear_session()
    assert (mel_matrix(2 * bands.shape[0] - 1, bands.shape[1], rate).sum(0) > 0).all()


def test_it_needs_a_sample_rate_and_other_models_of_sequences_do_not() -> None:
    with pytest.raises(ModelError, match=r"takes sounds \(samples, 1\) with a sample rate; the data has 900x1"):
        build("sound-cnn", sounds(900, 0))
    assert build("tcn", sounds(900, 1000)).output_shape == (None, 3)
    assert build("lstm", sounds(900, 1000)).output_shape == (None, 3)
