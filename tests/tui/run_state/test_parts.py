"""The parts of a script's run: each has its own epochs and steps, and counts on from the one before."""

from pathlib import Path

import numpy as np
import pytest

from accel_engine.events import (
    CommandAnswered,
    EpochEnded,
    Event,
    LearningRateChanged,
    Outcome,
    PartEnded,
    PartStarted,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    Validated,
)
from accel_engine.run import Chunk, RunInfo, Status, Update
from accel_tui.formatting.runs import part_title
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.marks import MarkKind
from accel_tui.run_state.state import RunState
from example_events import model_built

STARTED = RunStarted(time=0.0, run="k7m2", name="", plan={}, first_step=0, pid=1, host="h", versions={})


def part(number: int, step: int = 0, epoch: int = 0, name: str = "tiny", *, parsed: bool = False) -> PartStarted:
    return PartStarted(time=0.0, part=number, name=name, step=step, epoch=epoch, parsed=parsed)


def part_ended(number: int, step: int, epoch: int, outcome: Outcome = Outcome.FINISHED) -> PartEnded:
    return PartEnded(time=0.0, part=number, name="tiny", outcome=outcome, step=step, epoch=epoch, seconds=1.0)


def phase(one: Phase) -> PhaseChanged:
    return PhaseChanged(time=0.0, phase=one)


def steps(first: int, count: int, seconds: float = 1.0) -> Chunk:
    return Chunk(first, count, first, first + seconds, {"loss": np.ones(count, np.float32)})


def after(state: RunState, *events: Event, chunks: tuple[Chunk, ...] = ()) -> RunState:
    return apply_update(state, Update(events=events, chunks=chunks))


@pytest.fixture
def script() -> RunState:
    """A live script before its first part."""
    info = RunInfo(
        "k7m2", Path("k7m2"), None, {}, 0.0, "h", 1, Status.RUNNING, script="accel-tui run a.py", launched=True
    )
    return after(RunState(info=info), STARTED, phase(Phase.SCRIPT))


@pytest.fixture
def second_part(script: RunState) -> RunState:
    """The second part after 50 of its 300 steps; the first had 2 epochs of 10 steps, this one has 3 of 100."""
    state = after(script, part(1, name="base"), model_built(epochs=2, steps_per_epoch=10), chunks=(steps(0, 20),))
    validated = Validated(time=0.0, epoch=2, step=20, metrics={"loss": 1.0}, seconds=60.0)
    ends = [EpochEnded(time=0.0, epoch=each, step=10 * each, metrics={"loss": 1.0}, seconds=1.0) for each in (1, 2)]
    state = after(state, *ends, validated, part_ended(1, 20, 2), phase(Phase.SCRIPT))
    state = after(state, part(2, 20, 2, name="tuned"), phase(Phase.TRAINING))
    built = model_built(epochs=5, steps_per_epoch=100)
    return after(state, built, chunks=(steps(20, 1), steps(21, 49)))


def test_a_script_has_neither_progress_nor_end_in_sight_before_its_first_part(script: RunState) -> None:
    assert script.part is None
    assert script.is_between_parts
    assert not script.can_control_training
    assert (script.current_epoch, script.total_steps, script.progress, script.remaining) == (None,) * 4


def test_a_part_counts_on_from_the_one_before(second_part: RunState) -> None:
    assert second_part.part
    assert part_title(second_part.part) == "part 2 · tuned"
    assert second_part.can_control_training
    assert second_part.total_steps == 20 + 3 * 100
    assert (second_part.current_epoch, second_part.epochs) == (1, 3)
    assert second_part.progress == pytest.approx(50 / 300)
    assert second_part.steps_per_second == pytest.approx(49.0)
    # Its own steps and rate; not the validation of a minute of the part before.
    assert second_part.remaining == pytest.approx(250 / 49.0)


def test_epochs_of_steps_are_those_of_their_parts(second_part: RunState) -> None:
    assert [second_part.epoch_of(step) for step in (0, 9, 10, 19, 20, 119, 120, 319)] == [1, 1, 2, 2, 3, 3, 4, 5]
    assert [each and each.started.part for each in (second_part.part_at(step) for step in (0, 19, 20))] == [
        1,
        1,
        2,
    ]


def test_the_length_of_an_epoch_is_that_of_the_part_alone(second_part: RunState) -> None:
    state = after(second_part, model_built(epochs=5, steps_per_epoch=None))
    assert (state.steps_per_epoch, state.total_steps, state.current_epoch) == (None, None, 1)
    state = after(state, EpochEnded(time=0.0, epoch=3, step=60, metrics={}, seconds=1.0))
    assert (state.steps_per_epoch, state.total_steps, state.current_epoch) == (40, 140, 2)


def test_fits_of_one_recorder_may_have_epochs_of_other_lengths(script: RunState) -> None:
    ends = [EpochEnded(time=0.0, epoch=each, step=step, metrics={}, seconds=1.0) for each, step in ((1, 20), (2, 40))]
    state = after(script, *ends, model_built(epochs=4, steps_per_epoch=10), chunks=(steps(0, 45),))
    assert [state.epoch_of(step) for step in (0, 19, 20, 39, 40, 50)] == [1, 1, 2, 2, 3, 4]


def test_the_steps_of_a_loop_are_no_epoch(script: RunState) -> None:
    loop = after(script, part(1), model_built(epochs=0, steps_per_epoch=100), chunks=(steps(0, 25),))
    assert (loop.epoch_of(5), loop.steps_per_epoch, loop.total_steps) == (None, None, 100)
    ends = [EpochEnded(time=0.0, epoch=each, step=10 * each, metrics={}, seconds=1.0) for each in (1, 2)]
    loop = after(loop, *ends)
    assert [loop.epoch_of(step) for step in (0, 10, 24)] == [1, 2, 3]
    assert (loop.steps_per_epoch, loop.total_steps) == (10, 100)


def test_a_loop_without_epochs_has_no_best_value_of_a_part_before(script: RunState) -> None:
    ends = [EpochEnded(time=0.0, epoch=each, step=10 * each, metrics={"loss": 5.0}, seconds=1.0) for each in (1, 2)]
    first = after(script, part(1), model_built(epochs=2, steps_per_epoch=10), *ends, chunks=(steps(0, 20),))
    assert first.best == (10, 5.0)
    began = after(first, part_ended(1, 20, 2), part(2, 20, 2))
    assert began.best == (10, 5.0)
    assert after(began, chunks=(steps(20, 5),)).best is None
    others = Chunk(20, 5, 20, 21, {"norm": np.ones(5, np.float32)})
    assert after(began, chunks=(others,)).best == (10, 5.0)


def test_between_two_parts_nothing_is_estimated(second_part: RunState) -> None:
    state = after(second_part, part_ended(2, 70, 2, Outcome.STOPPED), phase(Phase.SCRIPT))
    assert state.part is None
    assert [each.ended and each.ended.outcome for each in state.parts] == [Outcome.FINISHED, Outcome.STOPPED]
    assert (state.current_epoch, state.total_steps, state.progress, state.remaining) == (None,) * 4
    assert state.steps_per_second is None
    assert not state.can_control_training


def test_a_new_part_has_no_model_yet(second_part: RunState) -> None:
    state = after(second_part, part_ended(2, 70, 3), part(3, 70, 3), phase(Phase.TRACING))
    assert state.built is None
    assert (state.current_epoch, state.total_steps, state.remaining, state.steps_per_second) == (None,) * 4


def test_a_part_that_ends_in_a_pause_leaves_no_pause(second_part: RunState) -> None:
    paused = after(second_part, phase(Phase.PAUSED))
    assert paused.paused
    assert not after(paused, part_ended(2, 70, 3), phase(Phase.SCRIPT)).paused


def test_lines_of_output_with_values_take_no_commands(script: RunState) -> None:
    state = after(script, part(1, name="output", parsed=True), phase(Phase.TRAINING), chunks=(steps(0, 5),))
    assert not state.is_between_parts
    assert not state.can_control_training
    assert (state.total_steps, state.progress, state.epoch_of(3)) == (None, None, None)


def test_the_start_of_each_later_part_is_marked_and_its_own_learning_rate_is_no_change(script: RunState) -> None:
    first = LearningRateChanged(time=0.0, step=0, learning_rate=1e-3)
    second = LearningRateChanged(time=0.0, step=20, learning_rate=1e-5)
    changed = LearningRateChanged(time=0.0, step=30, learning_rate=1e-6)
    state = after(script, part(1), first, part_ended(1, 20, 2), part(2, 20, 2), second, changed)
    assert {kind: track.steps for kind, track in state.marks.items()} == {
        MarkKind.PART: (20,),
        MarkKind.LEARNING_RATE_DOWN: (30,),
    }
    assert state.learning_rate == 1e-6


@pytest.mark.parametrize(("outcome", "progress"), [(Outcome.FINISHED, 1.0), (Outcome.FAILED, None)])
def test_a_script_that_finished_is_done_and_of_any_other_nobody_knows(
    second_part: RunState, outcome: Outcome, progress: float | None
) -> None:
    ended = RunEnded(time=9.0, outcome=outcome, steps=70, epochs=2, seconds=9.0)
    assert second_part.info
    state = after(second_part, part_ended(2, 70, 2, outcome), phase(Phase.SCRIPT), ended)
    assert state.progress == progress
    assert state.part is None
    assert state.current_epoch is None


def test_an_interrupted_script_is_no_longer_paused(second_part: RunState) -> None:
    answer = CommandAnswered(time=0.0, command="stop_now", who="me", obeyed=True, answer="sent SIGINT", step=70)
    assert not after(second_part, phase(Phase.PAUSED), answer).paused
