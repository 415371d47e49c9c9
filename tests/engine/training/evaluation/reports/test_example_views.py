"""Views of examples of every kind."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from accel_engine.run.diagnostics.views import Curve, Image, Row, Spectrogram, Text, Tokens
from accel_engine.training.evaluation.reports.example_views import InputViews, spectrogram
from accel_engine.training.evaluation.reports.pixels import mask_view, pixel_range, preview


@pytest.mark.parametrize(
    ("kind", "array", "expected"),
    [
        ("images", np.zeros((2, 8, 9, 3), np.uint8), Image),
        ("images", np.zeros((2, 28, 28), np.uint8), Image),
        ("arrays", np.zeros((2, 28, 28), np.float32), Image),
        ("arrays", np.zeros((2, 100, 6), np.float32), Curve),
        ("arrays", np.zeros((2, 8), np.float32), Row),
        ("arrays", np.zeros(2, np.float32), Row),
        ("arrays", np.zeros((2, 784), np.float32), Curve),
        ("arrays", np.zeros((2, 8, 8, 8, 1), np.float32), type(None)),
        ("table", np.zeros((2, 100), np.float32), Row),
        ("table", np.array([["a", "b"], ["c", "d"]]), Row),
        ("text", np.array(["a", "b"], object), Text),
        ("text", np.array([[b"a"], [b"\xff"]]), Text),
        ("tokens", np.zeros((2, 8), np.int32), Tokens),
        ("series", np.zeros((2, 24, 3), np.float32), Curve),
        ("series", np.zeros((2, 24), np.float32), Row),
        ("audio", np.zeros((2, 4000), np.float32), Spectrogram),
        ("audio", np.zeros((2, 4000, 1), np.int16), Spectrogram),
    ],
)
def test_the_view_of_an_array(kind: str, array: Any, expected: type) -> None:
    views = InputViews(kind, sample_rate=8000)(array)
    assert [type(view) for view in views] == [expected] * 2


def test_structures_of_values_are_rows() -> None:
    (view, _) = InputViews("table")(
        {"income": np.array([[1.5], [2.0]]), "city": np.array([b"K\xc3\xb6ln", b"Ulm"]), "age": np.array([30, 40])}
    )
    assert view == Row(("age", "city", "income"), ("30", "Köln", "1.5"), 3)


def test_views_are_bounded() -> None:
    row, text, tokens, curve = (
        InputViews(kind)(array)[0]
        for kind, array in [
            ("table", np.zeros((1, 5000))),
            ("text", np.array(["x" * 5000])),
            ("tokens", np.ones((1, 5000), np.int32)),
            ("series", np.zeros((1, 5000, 20))),
        ]
    )
    assert isinstance(row, Row)
    assert (len(row.names), len(row.values), row.columns) == (64, 64, 5000)
    assert isinstance(text, Text)
    assert (len(text.text), text.length) == (1000, 5000)
    assert isinstance(tokens, Tokens)
    assert (len(tokens.tokens), tokens.length) == (256, 5000)
    assert isinstance(curve, Curve)
    assert (curve.values.shape, curve.points, curve.series) == ((8, 512), 5000, 20)


def test_tokens_have_their_text_and_no_padding() -> None:
    (view,) = InputViews("text", vocabulary=("", "[UNK]", "the", "cat"))(np.array([[2, 3, 9, 0, 0]]))
    assert isinstance(view, Tokens)
    assert (view.tokens, view.length) == (("the", "cat", "9"), 3)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (np.array([0, 200], np.uint8), (0, 255)),
        (np.array([0, 200], np.uint16), (0, 65535)),
        (np.array([False, True]), (0, 1)),
        (np.array([0.0, 0.5]), (0, 1)),
        (np.array([-0.1, 0.5, np.nan]), (-1, 1)),
        (np.array([0.0, 200.0]), (0, 255)),
        (np.array([-3.0, 2.0, np.inf]), (-3, 2)),
        (np.array([np.nan]), (0, 1)),
    ],
)
def test_the_range_of_images(x: Any, expected: tuple[float, float]) -> None:
    assert pixel_range(x) == expected


def test_previews_of_large_images() -> None:
    x = np.zeros((1, 32, 128, 1), np.float32)
    x[0, :, :64] = 1
    x[0, 0, 0] = np.nan
    pixels = preview(x, (0.0, 1.0))
    assert pixels.shape == (1, 16, 64, 1)
    assert pixels[0, 1:, :32].min() == 255
    assert pixels[0, :, 32:].max() == 0


def test_masks_are_shrunk_without_mixing_classes() -> None:
    classes = np.zeros((100, 300), np.int32)
    classes[:, 150:] = 7
    classes[:, :10] = -1
    small = mask_view(classes).classes
    assert small.shape == (21, 64)
    assert set(np.unique(small)) == {0, 7, 255}


@pytest.mark.parametrize("length", [1, 2, 100, 511, 512, 8000, 100_000])
def test_spectrograms_show_the_frequency_of_a_tone(length: int) -> None:
    time = np.arange(length) / 8000
    view = spectrogram(np.sin(2 * np.pi * 1000 * time).astype(np.float32), 8000)
    assert view.seconds == pytest.approx(length / 8000)
    assert view.highest == 4000
    assert max(view.levels.shape) <= 64
    if length >= 512:
        assert view.levels.mean(1).argmax() / len(view.levels) == pytest.approx(1000 / 4000, abs=0.02)
        assert view.levels.max() == 255


@pytest.mark.parametrize("length", [2000, 50_000])
def test_the_levels_of_a_spectrogram(numbers: np.random.Generator, length: int) -> None:
    """Of a noise that gets quieter: means of frames and of frequencies."""
    sound = numbers.normal(size=length) * np.geomspace(1, 1e-6, length)
    starts = range(0, length - 511, 256)
    frames = np.stack([sound[start : start + 512] for start in starts]).astype(np.float32) * np.hanning(512)
    power = np.abs(np.fft.rfft(frames)) ** 2
    bands, columns = (np.linspace(0, count, min(count, 64) + 1).astype(int) for count in (257, len(starts)))
    means = [[power[begin:end, low:high].mean() for begin, end in pairwise(columns)] for low, high in pairwise(bands)]
    levels = np.clip(1 + 10 * np.log10(means / np.max(means)) / 80, 0, 1) * 255

    view = spectrogram(np.stack([sound, -sound], axis=1), 100)

    np.testing.assert_allclose(view.levels, levels, atol=0.51)
    assert view.levels.min() == 0
    assert (view.seconds, view.highest) == (length / 100, 50.0)


def test_silence_has_a_spectrogram() -> None:
    assert spectrogram(np.full(1000, np.nan, np.float32), 0).levels.max() <= 255
