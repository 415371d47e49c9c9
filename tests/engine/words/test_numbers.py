"""Durations, rates and metrics for people."""

import math
from collections.abc import Callable

import pytest

from accel_engine.words import numbers


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0:00"), (7.9, "0:08"), (59.6, "1:00"), (754, "12:34"), (3 * 3600 + 309, "3:05:09"), (52 * 3600, "2d 04h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert numbers.duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.00"),
        (0, "0"),
        (44, "44"),
        (7.25, "7.25"),
        (99.96, "100"),
        (648, "648"),
        (999.6, "1.00k"),
        (62_345, "62.3k"),
        (1e16, "10.0P"),
        (1e22, "10000E"),
    ],
)
def test_rates(number: float, text: str) -> None:
    assert numbers.compact(number) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.2867, "0.2867"),
        (0.0, "0.0000"),
        (12.345, "12.35"),
        (250.0, "250"),
        (9999.4, "9999"),
        (9999.6, "10k"),
        (12346.0, "12.35k"),
        (999_960.0, "1M"),
        (6.998e8, "699.8M"),
        (-1.557e9, "-1.557G"),
        (2.15e20, "2.15e20"),
        (3.2e-5, "3.2e-5"),
        (1.2345e-10, "1.23e-10"),
        (-1.0, "-1.0000"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
    ],
)
def test_metrics(value: float, text: str) -> None:
    assert numbers.metric(value) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (80, "80B"),
        (1024, "1.0K"),
        (1000, "1.0K"),
        (3.1 * 2**30, "3.1G"),
        (512 * 2**20, "512M"),
        (2**50, "1024T"),
    ],
)
def test_bytes(count: float, text: str) -> None:
    assert numbers.short_size(count) == text
    unit = text[-1] if text[-1] == "B" else f"{text[-1]}iB"
    assert numbers.size(count) == f"{text[:-1]} {unit}"


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "now"), (4, "now"), (42, "42s ago"), (61, "1m ago"), (7300, "2h ago"), (2e5, "2d ago")]
)
def test_ages(seconds: float, text: str) -> None:
    assert numbers.ago(seconds) == text


def test_shapes_and_counts() -> None:
    assert [numbers.counted(number, "step") for number in (0, 1, 1437)] == ["0 steps", "1 step", "1,437 steps"]
    assert numbers.shape((28, 28, 1)) == "28x28x1"
    assert numbers.shape(()) == "a single number"
    assert numbers.count(1437) == "1,437"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0.00 FLOP"), (950, "950 FLOP"), (7.7575e9, "7.76 GFLOP"), (989.4e12, "989 TFLOP"), (7.9152e15, "7.92 PFLOP")],
)
def test_operations(number: float, text: str) -> None:
    assert numbers.flops(number) == text


def test_a_speed_says_no_more_than_is_known() -> None:
    assert numbers.speed(12.34e9, 0.41) == "12.3 GFLOP/s, MFU 41%"
    assert numbers.speed(12.34e9, None) == "12.3 GFLOP/s"
    assert numbers.speed(None, None) == ""


@pytest.mark.parametrize(("of", "text"), [(2_000, "1,256 of 2,000 examples"), (0, "1,256 examples")])
def test_examples_are_counted_of_all_if_their_number_is_known(of: int, text: str) -> None:
    assert numbers.examples_done(1_256, of) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.349, "0.35 s"),
        (42.4, "42 s"),
        (99.0, "1.6 min"),
        (754, "13 min"),
        (9000, "2.5 h"),
        (4e7, "463 d"),
    ],
)
def test_lengths_of_time_in_sentences(seconds: float, text: str) -> None:
    assert numbers.span(seconds) == text


def test_a_length_of_time_has_more_digits_where_it_is_compared() -> None:
    assert [numbers.span(seconds, 3) for seconds in (61, 600, 129_600)] == ["1.02 min", "10 min", "1.5 d"]


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.283, "0.28"), (1.254, "1.25"), (2.64, "2.6"), (17.2, "17"), (1700, "1,700")]
)
def test_a_ratio_says_no_more_than_is_measured(ratio: float, text: str) -> None:
    assert numbers.times(ratio) == f"{text} times"


def test_a_noun_agrees_with_its_number() -> None:
    assert [numbers.plural(1, "class"), numbers.plural(2, "class"), numbers.plural(0, "step")] == [
        "class",
        "classes",
        "steps",
    ]


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(4 << 30, 16 << 30, "4.0 / 16.0 GiB"), (300 << 20, 512 << 20, "300.0 / 512 MiB"), (0, 8 << 30, "0.0 / 8.0 GiB")],
)
def test_a_part_has_the_unit_of_the_whole(part: float, whole: float, text: str) -> None:
    assert numbers.size_of(part, whole) == text


@pytest.mark.parametrize(
    ("form", "values", "texts"),
    [
        (numbers.metric, [14_990.0, 8089.0, -1523.4], ["14.99k", "8.09k", "-1.52k"]),
        (numbers.metric, [26_680.0, 136.8, 143.1], ["26.680k", "0.137k", "0.143k"]),
        (numbers.metric, [26_680.0, 13.68], ["26.68k", "13.68"]),
        (numbers.metric, [0.9944, 12.35, 250.0], ["0.9944", "12.35", "250"]),
        (numbers.metric, [14_990.0, math.nan, 0.0, 20_000.0], ["14.99k", "nan", "0.00k", "20.00k"]),
        (numbers.metric, [6.998e8, 0.04], ["699.8M", "0.0400"]),
        (numbers.metric, [2.15e20, 3e3], ["2.15e20", "3000"]),
        (numbers.compact, [62_345.0, 648.0], ["62.34k", "0.65k"]),
        (numbers.compact, [648.0, 7.25], ["648", "7.25"]),
        (numbers.latency, [0.0005, 0.002], ["0.50 ms", "2.00 ms"]),
        (numbers.latency, [0.0000012, 2.0], ["1.20 µs", "2.00 s"]),
        (numbers.size, [1126 << 10, 39_936], ["1.100 MiB", "0.038 MiB"]),
        (numbers.size, [177 << 20, 45 << 20], ["177 MiB", "45 MiB"]),
        (numbers.percent, [0.5, 0.001], ["50%", "0.1%"]),
        (numbers.metric, [], []),
    ],
)
def test_the_numbers_of_a_column_have_one_unit(
    form: Callable[[float], str], values: list[float], texts: list[str]
) -> None:
    assert list(map(numbers.in_one_form(form, values), values)) == texts
