import pytest

from accel_engine.training.autotuning.rate_watch import FIRST_PAUSE_SECONDS, WINDOW_SECONDS, RateWatch
from accel_engine.training.core.loop import ChunkResult


def add(watch: RateWatch, rate: float, seconds: float) -> None:
    """Add chunks of a rate for some seconds, a window each."""
    for _ in range(round(seconds / WINDOW_SECONDS)):
        watch.add(ChunkResult(round(rate * WINDOW_SECONDS), 0.0, WINDOW_SECONDS, {}, 1))


def expecting(rate: float, *, settled: bool = True) -> RateWatch:
    watch = RateWatch()
    assert not watch.has_expectation
    watch.expect(rate, settled=settled)
    assert watch.has_expectation
    return watch


@pytest.mark.parametrize(("rate", "changed"), [(100, False), (80, False), (70, True), (125, False), (150, True)])
def test_another_trial_is_due_if_the_rate_has_changed(rate: float, changed: bool) -> None:
    watch = expecting(100)
    add(watch, rate, FIRST_PAUSE_SECONDS)

    assert watch.must_look_again is changed


def test_the_latest_window_counts() -> None:
    watch = expecting(100)
    add(watch, 10, FIRST_PAUSE_SECONDS)
    assert watch.must_look_again

    add(watch, 100, WINDOW_SECONDS)
    assert not watch.must_look_again


def test_trials_become_rarer() -> None:
    watch = expecting(100)
    add(watch, 10, FIRST_PAUSE_SECONDS)
    watch.expect(10, settled=True)
    add(watch, 100, 2 * FIRST_PAUSE_SECONDS - WINDOW_SECONDS)
    assert not watch.must_look_again

    add(watch, 100, WINDOW_SECONDS)
    assert watch.must_look_again


def test_an_unsettled_trial_is_repeated() -> None:
    watch = expecting(100, settled=False)
    assert not watch.must_look_again

    add(watch, 100, FIRST_PAUSE_SECONDS)
    assert watch.must_look_again
