import pytest

from accel_engine.measure.trial_statistics import LEAST_ROUNDS, RELEVANT
from accel_engine.training.autotuning.mode_choice import ROUNDS, TURN_CHUNKS, TURN_SECONDS, ModeTrial, TrialSpeeds
from accel_engine.training.core.loop import ChunkResult


def chunk(rate: float, seconds: float = TURN_SECONDS) -> ChunkResult:
    return ChunkResult(round(rate * seconds), 0.0, seconds, {}, 1)


def run(default: list[float], alternative: list[float]) -> tuple[TrialSpeeds, int]:
    """The result of a trial whose turns have these rates, and the number of turns of each mode."""
    turns, sides = ModeTrial(), (iter(default), iter([1.0, *alternative]))
    taken = [0, 0]
    while not turns.has_ended:
        side = int(turns.on_alternative)
        rate = next(sides[side])
        taken[side] += 1
        while int(turns.on_alternative) == side:
            turns.add(chunk(rate))
    assert taken[1] == taken[0] + 1  # the first one does not count
    return turns.speeds, taken[0]


def test_modes_take_turns_of_some_chunks_and_some_time() -> None:
    turns = ModeTrial()
    assert turns.on_alternative

    for _ in range(TURN_CHUNKS - 1):
        turns.add(chunk(100, 10 * TURN_SECONDS))
        assert turns.on_alternative
    turns.add(chunk(100, 10 * TURN_SECONDS))
    assert not turns.on_alternative

    for _ in range(3):
        turns.add(chunk(100, TURN_SECONDS / 4))
        assert not turns.on_alternative
    turns.add(chunk(100, TURN_SECONDS / 4))
    assert turns.on_alternative


def test_rates_are_medians_of_all_rounds() -> None:
    speeds, rounds = run([100, 110, 120, 120, 130, 140], [130, 125, 140, 140, 150, 160])

    assert speeds == TrialSpeeds(120, 140, settled=True)
    assert speeds.alternative_is_faster
    assert speeds.gain == pytest.approx(140 / 120)
    assert rounds == LEAST_ROUNDS


@pytest.mark.parametrize(("alternative", "faster"), [(400, True), (30, False)])
def test_a_clear_difference_ends_a_trial_early(alternative: float, faster: bool) -> None:
    speeds, rounds = run([100] * ROUNDS, [alternative] * ROUNDS)

    assert speeds == TrialSpeeds(100, alternative)
    assert speeds.alternative_is_faster is faster
    assert rounds == LEAST_ROUNDS


def test_rounds_that_disagree_are_not_settled() -> None:
    speeds, rounds = run([100] * ROUNDS, [*[130, 80] * 7, 130])

    assert (speeds.settled, speeds.alternative_is_faster, rounds) == (False, True, ROUNDS)


def test_one_disturbed_round_does_not_hide_a_distinct_difference() -> None:
    assert run([100] * ROUNDS, [130, 130, 20, *[130] * 12])[0].settled
    assert not run([1000] * ROUNDS, [1040, 1040, 200, *[1010, 950, 1040] * 4])[0].settled


def test_a_difference_that_does_not_matter_is_settled_and_keeps_the_plans_mode() -> None:
    speeds, rounds = run([1000] * 9, [1010] * 9)

    assert (speeds.settled, speeds.alternative_is_faster, rounds) == (True, False, LEAST_ROUNDS)
    assert not TrialSpeeds(100, 100 * RELEVANT).alternative_is_faster


def test_the_gain_of_a_slower_mode_is_none() -> None:
    assert TrialSpeeds(100, 0).gain == 1
