from types import SimpleNamespace
from typing import Any

import keras
import pytest

from accel_engine.data.structure import ArraySpec
from accel_engine.plan import Plan
from accel_engine.training.autotuning import mode_choice
from accel_engine.training.autotuning.mode_choice import (
    FIRST_PAUSE_SECONDS,
    WINDOW_SECONDS,
    ModeChoice,
    RateWatch,
    TrialSpeeds,
    alternative_mode,
)
from accel_engine.training.core.loop import ChunkResult, ExecutionMode


def add(choice: ModeChoice, default: float, alternative: float) -> TrialSpeeds | None:
    """Add a second of steps of the mode in use, which has one of these rates."""
    rate = alternative if choice.uses_alternative else default
    return choice.add(ChunkResult(round(rate), 0.0, 1.0, {}, 1))


def end_trial(choice: ModeChoice, default: float, alternative: float) -> TrialSpeeds:
    """Add steps until a trial ends."""
    while (speeds := add(choice, default, alternative)) is None:
        assert not choice.is_settled
    return speeds


def test_a_trial_begins_after_a_chunk_in_the_plans_mode() -> None:
    choice = ModeChoice()
    assert not choice.uses_alternative
    assert choice.is_trying

    add(choice, 100, 300)
    assert choice.uses_alternative
    assert choice.is_trying
    assert end_trial(choice, 100, 300) == TrialSpeeds(100, 300)
    assert choice.uses_alternative
    assert choice.is_settled
    assert not choice.is_trying


def test_the_faster_mode_of_an_earlier_run_needs_no_trial() -> None:
    choice = ModeChoice()
    choice.use(TrialSpeeds(100, 300))

    assert add(choice, 100, 300) is None
    assert choice.uses_alternative
    assert choice.is_settled


def test_another_trial_begins_when_the_faster_mode_has_become_slow() -> None:
    choice = ModeChoice()
    choice.use(TrialSpeeds(100, 300))
    assert not choice.is_trying
    for _ in range(round(FIRST_PAUSE_SECONDS)):
        add(choice, 100, 50)

    assert not choice.is_settled
    assert choice.is_trying
    assert end_trial(choice, 100, 50) == TrialSpeeds(100, 50)
    assert not choice.uses_alternative
    assert choice.is_settled


def add_for(watch: RateWatch, rate: float, seconds: float) -> None:
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
    add_for(watch, rate, FIRST_PAUSE_SECONDS)

    assert watch.trial_is_due is changed


def test_the_latest_window_counts() -> None:
    watch = expecting(100)
    add_for(watch, 10, FIRST_PAUSE_SECONDS)
    assert watch.trial_is_due

    add_for(watch, 100, WINDOW_SECONDS)
    assert not watch.trial_is_due


def test_trials_become_rarer() -> None:
    watch = expecting(100)
    add_for(watch, 10, FIRST_PAUSE_SECONDS)
    watch.expect(10, settled=True)
    add_for(watch, 100, 2 * FIRST_PAUSE_SECONDS - WINDOW_SECONDS)
    assert not watch.trial_is_due

    add_for(watch, 100, WINDOW_SECONDS)
    assert watch.trial_is_due


def test_an_unsettled_trial_is_repeated() -> None:
    watch = expecting(100, settled=False)
    assert not watch.trial_is_due

    add_for(watch, 100, FIRST_PAUSE_SECONDS)
    assert watch.trial_is_due


@pytest.mark.parametrize(
    ("plan", "replicas", "newer", "tried"),
    [
        (Plan(), 1, False, ExecutionMode(xla=True)),
        (Plan(), 2, False, None),  # XLA may hang or abort
        (Plan(), 1, True, None),  # XLA aborts
        (Plan(deterministic="on"), 1, False, None),  # which of the two is faster differs from run to run
    ],
)
def test_xla_is_tried_on_one_gpu_for_which_the_build_has_code(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, replicas: int, newer: bool, tried: ExecutionMode | None
) -> None:
    monkeypatch.setattr(mode_choice, "are_newer_than_build", lambda: newer)
    assembly: Any = SimpleNamespace(
        plan=plan,
        has_custom_train_step=False,
        single_process=True,
        on_tpu=False,
        on_cpu=False,
        replicas=replicas,
        stages=None,
        strategy=None,
        dataset=SimpleNamespace(spec=ArraySpec((4,), "float32")),
        model=keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]),
    )
    assert alternative_mode(assembly, ExecutionMode()) == tried
