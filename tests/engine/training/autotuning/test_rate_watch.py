import pytest

from accel_engine.training.autotuning.rate_watch import FIRST_PAUSE_SECONDS, WINDOW_SECONDS, RateWatch
from accel_engine.training.core.loop import ChunkResult


def add(watch: RateWatch, rate: float, seconds: float) -> None:
    """Add chunks of a rate for some seconds, a window each."""
    for _ in range(round(seconds / WINDOW_SECONDS)):
        watch.add(ChunkResult(round(rate * WINDOW_SECONDS), 0.0, WINDOW_SECONDS, {}, 1))


def expecting(rate: float, *, settled: bool = True) -> RateWatch:
    watch = RateWatch()
    watch.expect(rate, settled=settled)
    assert watch.is_settled is settled
    return watch


@pytest.mark.parametrize("seconds", [WINDOW_SECONDS / 2, 2 * WINDOW_SECONDS])
def test_the_first_trial_is_due_at_once(seconds: float) -> None:
    watch = RateWatch()
    assert not watch.is_settled

    watch.add(ChunkResult(10, 0.0, seconds, {}, 1))
    assert watch.trial_is_due


@pytest.mark.parametrize(("rate", "changed"), [(100, False), (80, False), (70, True), (125, False), (150, True)])
def test_another_trial_is_due_if_the_rate_has_changed(rate: float, changed: bool) -> None:
    watch = expecting(100)
    add(watch, rate, FIRST_PAUSE_SECONDS)

    assert watch.trial_is_due is changed


def test_the_latest_window_counts() -> None:
    watch = expecting(100)
    add(watch, 10, FIRST_PAUSE_SECONDS)
    assert watch.trial_is_due

    add(watch, 100, WINDOW_SECONDS)
    assert not watch.trial_is_due


def test_trials_become_rarer() -> None:
    watch = expecting(100)
    add(watch, 10, FIRST_PAUSE_SECONDS)
    watch.expect(10, settled=True)
    add(watch, 100, 2 * FIRST_PAUSE_SECONDS - WINDOW_SECONDS)
    assert not watch.trial_is_due

    add(watch, 100, WINDOW_SECONDS)
    assert watch.trial_is_due


def test_an_unsettled_trial_is_repeated() -> None:
    watch = expecting(100, settled=False)
    assert not watch.trial_is_due

    add(watch, 100, FIRST_PAUSE_SECONDS)
    assert watch.trial_is_due
