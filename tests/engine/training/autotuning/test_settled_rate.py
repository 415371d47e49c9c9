from collections.abc import Iterable

import pytest

from accel_engine.training.autotuning.settled_rate import WINDOW_SECONDS, WINDOWS, SettledRate
from accel_engine.training.core.loop import ChunkResult, ExecutionMode

WHOLE, SPLIT = ExecutionMode(), ExecutionMode(micro_batches=4)


def add(rate: SettledRate, values: Iterable[float], mode: ExecutionMode = WHOLE) -> None:
    """Add chunks of these rates, a window each."""
    for value in values:
        rate.add(ChunkResult(round(value * WINDOW_SECONDS), 0.0, WINDOW_SECONDS, {}, 1), mode)


def test_a_rate_is_the_median_of_windows_that_agree() -> None:
    rate = SettledRate()
    add(rate, [1])  # the warm-up
    add(rate, [100] * (WINDOWS - 1))
    assert rate.value is None

    add(rate, [104])
    assert rate.value == 100

    add(rate, [104])
    assert rate.value == 104, "the latest ones"


@pytest.mark.parametrize("disturbed", [50, 200])
def test_windows_that_disagree_have_no_rate(disturbed: float) -> None:
    rate = SettledRate()
    add(rate, [1, *[100] * WINDOWS, disturbed])
    assert rate.value is None

    add(rate, [100] * WINDOWS)
    assert rate.value == 100


def test_another_mode_begins_anew_with_a_warm_up() -> None:
    rate = SettledRate()
    add(rate, [1, *[100] * WINDOWS])

    add(rate, [1, *[150] * (WINDOWS - 1)], SPLIT)
    assert rate.value is None

    add(rate, [150], SPLIT)
    assert rate.value == 150


def test_short_chunks_make_a_window_together() -> None:
    rate = SettledRate()
    for _ in range(1 + 4 * WINDOWS):
        rate.add(ChunkResult(25, 0.0, WINDOW_SECONDS / 4, {}, 1), WHOLE)
    assert rate.value == pytest.approx(100 / WINDOW_SECONDS)
