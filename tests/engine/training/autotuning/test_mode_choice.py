from accel_engine.training.autotuning.mode_choice import ModeChoice
from accel_engine.training.autotuning.rate_watch import FIRST_PAUSE_SECONDS
from accel_engine.training.autotuning.trial import TrialSpeeds
from accel_engine.training.core.loop import ChunkResult


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

    add(choice, 100, 300)
    assert choice.uses_alternative
    assert end_trial(choice, 100, 300) == TrialSpeeds(100, 300)
    assert choice.uses_alternative
    assert choice.is_settled


def test_the_faster_mode_of_an_earlier_run_needs_no_trial() -> None:
    choice = ModeChoice()
    choice.use(TrialSpeeds(100, 300))

    assert add(choice, 100, 300) is None
    assert choice.uses_alternative
    assert choice.is_settled


def test_another_trial_begins_when_the_faster_mode_has_become_slow() -> None:
    choice = ModeChoice()
    choice.use(TrialSpeeds(100, 300))
    for _ in range(round(FIRST_PAUSE_SECONDS)):
        add(choice, 100, 50)

    assert not choice.is_settled
    assert end_trial(choice, 100, 50) == TrialSpeeds(100, 50)
    assert not choice.uses_alternative
    assert choice.is_settled
