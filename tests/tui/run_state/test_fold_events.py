"""What is known of a run, folded from what it says."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.events import (
    CheckpointSaved,
    CommandAnswered,
    EpochEnded,
    Event,
    LearningRateChanged,
    MicroBatchesTried,
    ModelBuilt,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    ThreadsChosen,
    Validated,
    Warned,
    WorkCounted,
    XlaTried,
)
from accel_engine.run import Chunk, RunInfo, Status, Update
from accel_engine.run.store.buckets import downsample as buckets_of
from accel_engine.run.store.downsampled_steps import StepRange
from accel_engine.run.store.steps import THROUGHPUT, TIME
from accel_tui.cli.event_text import format_event
from accel_tui.run_state.curve import RecordedCurve
from accel_tui.run_state.fold_events import NOTICES, apply_update
from accel_tui.run_state.pace import validations_left
from accel_tui.run_state.state import RunState
from example_events import model_built


def chunk(first: int, losses: Sequence[float], started: float = 0.0, seconds: float = 1.0, **series: Any) -> Chunk:
    values = {"loss": np.asarray(losses, np.float32)} | {
        name: np.asarray(numbers, np.float32) for name, numbers in series.items()
    }
    return Chunk(first, len(losses), started, started + seconds, values)


def started(first_step: int = 0, time: float = 0.0, **plan: Any) -> RunStarted:
    return RunStarted(time=time, run="k7m2", name="", plan=plan, first_step=first_step, pid=1, host="h", versions={})


def built(epochs: int = 4, steps_per_epoch: int = 100) -> ModelBuilt:
    return model_built(epochs=epochs, steps_per_epoch=steps_per_epoch)


def validated(step: int, loss: float, seconds: float = 2.0) -> Validated:
    return Validated(time=0.0, epoch=1, step=step, metrics={"loss": loss}, seconds=seconds)


def after(*events: Event, chunks: Sequence[Chunk] = (), state: RunState | None = None) -> RunState:
    return apply_update(state or RunState(), Update(events=events, chunks=tuple(chunks)))


def test_an_empty_update_changes_nothing() -> None:
    state = RunState()
    assert apply_update(state, Update()) is state


def test_folding_leaves_the_earlier_state_as_it_was() -> None:
    before = after(started(), chunks=[chunk(0, [3.0, 2.0])])
    later = after(Warned(time=1.0, message="hot"), chunks=[chunk(2, [1.0])], state=before)
    assert (before.step, before.curves["loss"].end_step, before.notices) == (2, 2, ())
    assert (later.step, later.curves["loss"].last_value, later.notice_count) == (3, 1.0, 1)


def test_all_at_once_is_the_same_as_bit_by_bit() -> None:
    events = (
        started(learning_rate=0.1),
        built(),
        validated(4, 0.5),
        LearningRateChanged(time=0.0, step=4, learning_rate=0.2),
        validated(8, 0.25),
    )
    chunks = [chunk(step, [float(step), step + 1.0], started=step) for step in range(0, 40, 2)]
    once = after(*events, chunks=chunks)
    bits = RunState()
    for event in events:
        bits = after(event, state=bits)
    for one in chunks:
        bits = after(chunks=[one], state=bits)
    assert once.step == bits.step == 40
    assert np.array_equal(once.curves["loss"].means, bits.curves["loss"].means)
    assert np.array_equal(once.throughput.means, bits.throughput.means)
    assert once.validation == bits.validation == {"loss": ((4, 0.5), (8, 0.25))}
    assert once.learning_rate == bits.learning_rate == 0.2
    assert once.step_rate == bits.step_rate


def test_every_series_is_a_curve_and_one_that_begins_late_has_a_gap_before() -> None:
    state = after(chunks=[chunk(0, [1.0, 1.0]), chunk(2, [1.0], norm=[7.0])])
    assert state.curves["norm"].end_step == 3
    assert (state.curves["norm"].gaps, state.curves["norm"].last_value) == (2, 7.0)
    state = after(chunks=[chunk(3, [1.0]), chunk(4, [1.0], norm=[8.0])], state=state)
    assert (state.curves["norm"].gaps, state.curves["norm"].end_step) == (3, 5)


def test_not_a_number_is_a_gap_that_is_counted() -> None:
    state = after(chunks=[chunk(0, [1.0, math.nan, math.inf, 2.0])])
    assert state.curves["loss"].gaps == 2
    assert state.metrics == {"loss": 2.0}


def test_steps_that_nothing_is_known_of_are_a_gap() -> None:
    state = after(chunks=[chunk(0, [1.0]), chunk(5, [2.0])])
    assert (state.step, state.curves["loss"].end_step, state.curves["loss"].gaps) == (6, 6, 4)


def test_a_resumed_run_forgets_what_came_after_its_checkpoint() -> None:
    state = after(
        started(),
        built(),
        validated(4, 0.5),
        EpochEnded(time=0.0, epoch=1, step=4, metrics={}, seconds=1.0),
        validated(8, 0.4),
        EpochEnded(time=0.0, epoch=2, step=8, metrics={}, seconds=1.0),
        chunks=[chunk(0, [9.0] * 10)],
    )
    resumed = after(started(first_step=5, time=100.0), state=state)
    assert (resumed.step, resumed.curves["loss"].end_step, resumed.throughput.end_step) == (5, 5, 5)
    assert resumed.validation == {"loss": ((4, 0.5),)}
    assert resumed.epoch
    assert resumed.epoch.epoch == 1
    resumed = after(validated(8, 0.3), chunks=[chunk(5, [1.0] * 5, started=101.0)], state=resumed)
    assert resumed.curves["loss"].means.tolist() == [9.0] * 5 + [1.0] * 5
    assert resumed.validation == {"loss": ((4, 0.5), (8, 0.3))}


def test_who_has_not_read_the_steps_before_knows_the_next_one_too() -> None:
    state = after(started(first_step=141), built(epochs=120, steps_per_epoch=14))
    assert (state.step, state.current_epoch) == (141, 11)
    state = after(chunks=[chunk(141, [1.0])], state=state)
    assert (state.step, state.curves["loss"].end_step, state.curves["loss"].gaps) == (142, 142, 141)
    assert after(chunks=[chunk(0, [1.0] * 150)], state=state).curves["loss"].gaps == 0


def answered(command: str, *, obeyed: bool = True) -> CommandAnswered:
    return CommandAnswered(time=0.0, command=command, who="me", obeyed=obeyed, answer="", step=1)


@pytest.mark.parametrize("end", [answered("resume"), answered("stop"), answered("stop_now"), started(first_step=1)])
def test_a_pause_lasts_until_its_end_whatever_is_done_in_it(end: Event) -> None:
    info = RunInfo("k7m2", Path("k7m2"), None, {}, created=0.0, host="h", pid=1, status=Status.RUNNING)
    state = RunState(info=info)
    for event in (
        answered("pause"),
        PhaseChanged(time=0.0, phase=Phase.PAUSED),
        PhaseChanged(time=0.0, phase=Phase.CHECKPOINTING),
        answered("checkpoint"),
        answered("resume", obeyed=False),
    ):
        state = after(event, state=state)
        assert state.paused
    assert not after(end, state=state).paused
    assert not after(PhaseChanged(time=0.0, phase=Phase.TRAINING), state=state).paused


def test_a_resumed_run_that_is_read_afterwards_has_only_what_counts() -> None:
    state = after(
        started(),
        validated(8, 0.4),
        started(first_step=5),
        validated(8, 0.3),
        chunks=[chunk(0, [9.0] * 5), chunk(5, [1.0] * 4)],
    )
    assert state.validation == {"loss": ((8, 0.3),)}
    assert (state.step, state.curves["loss"].end_step) == (9, 9)


def test_chunks_that_go_back_replace_what_was_there() -> None:
    state = after(chunks=[chunk(0, [9.0] * 10)])
    state = after(chunks=[chunk(10, [9.0]), chunk(6, [1.0, 1.0])], state=state)
    assert state.step == 8
    assert state.curves["loss"].means.tolist() == [9.0] * 6 + [1.0] * 2


def test_an_engine_that_takes_the_run_up_again_undoes_its_end() -> None:
    end = RunEnded(time=1.0, outcome=Outcome.STOPPED, steps=5, epochs=0, seconds=1.0, steps_per_second=5.0, metrics={})
    state = after(started(), PhaseChanged(time=0.5, phase=Phase.TRAINING), end)
    assert state.ended is end
    state = after(started(first_step=5, time=9.0), state=state)
    assert state.ended is None
    assert state.phase is None


def test_the_time_to_the_end_is_taken_after_warm_up_and_without_pauses() -> None:
    state = after(started(time=0.0), built(), chunks=[chunk(0, [1.0] * 10, started=1.0, seconds=30.0)])
    assert state.remaining is None  # only the chunk that was traced is known
    paused = [chunk(10, [1.0] * 10, started=31.0, seconds=0.5), chunk(20, [1.0] * 10, started=500.0, seconds=0.5)]
    state = after(chunks=paused, state=state)
    assert state.step_rate.rate == pytest.approx(20.0)
    assert state.remaining == pytest.approx(370 / 20)


def test_the_time_to_the_end_has_room_for_validation_and_checkpoints() -> None:
    saved = CheckpointSaved(time=0.0, epoch=1, step=100, path="c", seconds=1.0)
    chunks = [chunk(first, [1.0] * 50, started=first, seconds=0.5) for first in range(0, 200, 50)]
    state = after(started(), built(), validated(100, 0.5, seconds=2.0), saved, chunks=chunks)
    assert state.remaining == pytest.approx(200 / 100 + 2 * (2.0 + 1.0))
    epochs = [EpochEnded(time=0.0, epoch=epoch, step=100 * epoch, metrics={}, seconds=1.0) for epoch in range(1, 5)]
    state = after(*epochs, state=state)
    assert state.remaining == pytest.approx(200 / 100 + 2 * (2.0 + 1.0 / 4))  # one epoch in four had a checkpoint


def test_the_time_to_the_end_has_the_first_validation() -> None:
    """100 of 400 steps at 100 a second, and 320 examples in batches of 32: a third of ten steps, four times."""
    sizes = {"epochs": 4, "steps_per_epoch": 100, "validation_examples": 320, "global_batch": 32}
    plan, chunks = {"validation": "epoch"}, [chunk(first, [1.0] * 50, started=first, seconds=0.5) for first in (0, 50)]
    state = after(started(**plan), model_built(**sizes), chunks=chunks)
    assert state.remaining == pytest.approx(300 / 100 + 4 * 10 / 3 / 100)
    assert after(validated(100, 0.5, seconds=2.0), state=state).remaining == pytest.approx(300 / 100 + 3 * 2.0)
    without = after(started(validation="off"), model_built(**sizes), chunks=chunks)
    assert without.remaining == pytest.approx(300 / 100)


@pytest.mark.parametrize(
    ("plan", "done", "left"),
    [
        ({"validation": "off"}, (0, 0), 0),
        ({"validation": "end"}, (0, 0), 1),
        ({"validation": "end"}, (5, 500), 0),
        ({"validation": "epoch"}, (0, 0), 5),
        ({"validation": "epoch"}, (2, 250), 3),  # at a command, in the third epoch
        ({"validation": "epoch", "validation_every": "2 epochs"}, (0, 0), 3),  # after 2, 4, and at the end
        ({"validation": "epoch", "validation_every": "2 epochs"}, (4, 400), 1),
        ({"validation": "epoch", "validation_every": "150 steps"}, (1, 150), 3),
        ({"validation": "epoch", "validation_every": "1 minutes"}, (1, 150), 2),  # after one, and at the end
        ({"model": "a script's"}, (0, 0), None),
    ],
)
def test_the_validations_that_are_left(plan: dict[str, Any], done: tuple[int, int], left: int | None) -> None:
    assert validations_left(plan, 5, 500, done, 90.0) == left


def test_the_next_engine_is_warmed_up_too() -> None:
    chunks = [chunk(first, [1.0] * 10, started=first, seconds=1.0) for first in (0, 10, 20)]
    state = after(started(), built(), chunks=chunks)
    assert state.step_rate.rate == pytest.approx(10.0)
    state = after(started(first_step=30, time=100.0), state=state)
    assert state.step_rate.rate is None
    state = after(chunks=[chunk(30, [1.0] * 10, started=101.0, seconds=60.0)], state=state)
    assert state.step_rate.rate is None
    state = after(chunks=[chunk(40, [1.0] * 10, started=161.0, seconds=0.5)], state=state)
    assert state.step_rate.rate == pytest.approx(20.0)


def test_dispatches_that_overlap_are_not_counted_twice() -> None:
    chunks = [
        chunk(0, [1.0] * 10, started=0.0),
        *(chunk(10 * i, [1.0] * 10, started=i - 0.5, seconds=1.5) for i in (1, 2, 3)),
    ]
    state = after(started(), chunks=chunks)
    assert state.step_rate.rate == pytest.approx(10.0)
    assert state.throughput.means[10:] == pytest.approx(10.0)


def test_notices_are_bounded_and_counted() -> None:
    warnings = [Warned(time=float(number), message=str(number)) for number in range(NOTICES + 5)]
    answer = CommandAnswered(time=999.0, command="pause", who="ada", obeyed=True, answer="paused", step=1)
    state = after(*warnings, answer)
    assert len(state.notices) == NOTICES
    assert state.notice_count == NOTICES + 6
    assert state.notices[-1] is answer
    assert all(one.time <= other.time for one, other in pairwise(state.notices))


def test_the_learning_rate_is_the_plans_until_the_engine_says_another() -> None:
    assert after(started()).learning_rate is None
    state = after(started(learning_rate=0.1))
    assert state.learning_rate == 0.1
    assert after(LearningRateChanged(time=0.0, step=0, learning_rate=0.5), state=state).learning_rate == 0.5


def test_meters_keep_the_latest_sample_and_the_past() -> None:
    samples = tuple(Sample(float(second), "gpu:0", {"utilization": Reading(float(second), "%")}) for second in range(3))
    meter = apply_update(RunState(), Update(samples=samples)).meters["gpu:0"]
    assert (meter.sample.time, meter.utilizations) == (2.0, (0.0, 1.0, 2.0))


@pytest.mark.parametrize(("step", "epoch"), [(0, 1), (99, 1), (100, 2), (399, 4), (400, 4)])
def test_the_epoch_is_that_of_the_next_step(step: int, epoch: int) -> None:
    chunks = [chunk(0, [1.0] * step)] if step else []
    state = after(built(), chunks=chunks)
    assert state.current_epoch == epoch
    validating = after(PhaseChanged(time=0.0, phase=Phase.VALIDATING), state=state)
    assert validating.current_epoch == max((step - 1) // 100 + 1, 1), "of the last step while it is validated"


def test_an_end_that_is_not_read_yet_is_not_a_loss() -> None:
    info = RunInfo("k7m2", Path("k7m2"), None, {}, created=0.0, host="h", pid=1, status=Status.FAILED)
    state = replace(after(started()), info=info)
    assert (state.live, state.lost, state.has_ended) == (False, False, False)
    end = RunEnded(time=1.0, outcome=Outcome.FAILED, steps=5, epochs=0, seconds=1.0, steps_per_second=5.0, metrics={})
    assert after(end, state=state).has_ended
    assert (state.last_step, after(end, state=state).last_step) == (state.total_steps, state.step)


def test_what_trying_xla_has_shown_is_kept_until_the_next_engine() -> None:
    tried = XlaTried(time=5.0, step=40, xla=True, plain=650.0, compiled=1430.0, remembered=False)

    state = apply_update(RunState(), Update(events=(tried,)))

    assert state.xla is tried
    assert "XLA on: 1.43k steps/s with it, 650 without" in format_event(tried, state)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"threads": 1, "source": "earlier runs", "rate": 128.0, "default_rate": 99.0},
            "1 thread per operation: 128 steps/s in an earlier run, 99.0 with 2",
        ),
        ({"threads": 3, "source": "plan"}, "3 threads per operation"),
        ({"threads": 3, "source": "environment"}, "3 threads per operation (TF_NUM_INTRAOP_THREADS)"),
    ],
)
def test_the_number_of_threads_is_kept_until_the_next_engine(values: dict[str, Any], words: str) -> None:
    chosen = ThreadsChosen(time=5.0, default=2, **values)

    state = apply_update(RunState(), Update(events=(chosen,)))

    assert state.threads is chosen
    assert format_event(chosen, state) == words
    assert after(started(), state=state).threads is None


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        (4, "micro-batches 4 per step: 105 steps/s with 4, 80.0 without"),
        (1, "micro-batches off: 105 steps/s with 4, 80.0 without"),
    ],
)
def test_what_trying_micro_batches_has_shown_is_kept_likewise(taken: int, words: str) -> None:
    tried = MicroBatchesTried(
        time=5.0, step=40, micro_batches=taken, tried=4, whole=80.0, split=105.0, remembered=False
    )

    state = apply_update(RunState(), Update(events=(tried,)))

    assert state.micro_batches is tried
    assert words in format_event(tried, state)


def stretch(last_step: int, width: int = 64) -> StepRange:
    values = {"loss": np.ones(last_step, np.float32), THROUGHPUT: np.full(last_step, 10.0, np.float32)}
    times = np.arange(last_step) / 10
    return StepRange(
        0, last_step, width, {name: buckets_of(one, width) for name, one in {**values, TIME: times}.items()}
    )


def test_a_long_run_is_known_from_its_summary_and_its_latest_chunks() -> None:
    chunks = (chunk(1000, [2.0, 3.0]), chunk(1002, [4.0]))
    state = apply_update(RunState(), Update(events=(started(), built()), chunks=chunks, step_range=stretch(1000)))
    assert state.step == 1003
    assert list(state.curves) == ["loss"]
    assert (state.curves["loss"].end_step, state.curves["loss"].last_value, state.curves["loss"].gaps) == (1003, 4.0, 0)
    assert state.curves["loss"].low.tolist() == [1.0] * 16
    assert state.throughput.end_step == 1003
    assert state.throughput.means[0] == 10.0


def test_a_summary_replaces_what_was_known() -> None:
    state = after(chunks=[chunk(0, [9.0] * 10)])
    state = apply_update(state, Update(chunks=(chunk(1000, [2.0]),), step_range=stretch(1000)))
    assert (state.step, state.curves["loss"].high.max()) == (1001, 2.0)


def test_steps_that_are_taken_again_are_not_looked_at_closely_as_they_were() -> None:
    state = replace(after(chunks=[chunk(0, [9.0] * 10)]), visible_series={"loss": RecordedCurve()})
    assert after(chunks=[chunk(10, [1.0])], state=state).visible_series
    assert not after(chunks=[chunk(5, [1.0])], state=state).visible_series


def test_the_use_of_the_devices_follows_the_pace() -> None:
    work = WorkCounted(time=1.0, flops=2e9, peak=None, reason="some reason")
    at_pace = [chunk(0, [1.0] * 10, started=0.0), chunk(10, [1.0] * 10, started=1.0)]
    assert (after(work).flops_per_second, after(work).mfu) == (None, None)

    state = after(started(), work, chunks=at_pace)
    assert (state.flops_per_second, state.mfu) == (pytest.approx(20e9), None)
    known = apply_update(state, Update(events=(replace(work, peak=80e9, source="a datasheet", reason=""),)))
    assert known.mfu == pytest.approx(0.25)
    exceeded = apply_update(state, Update(events=(replace(work, peak=8e9, source="a datasheet", reason=""),)))
    assert (exceeded.flops_per_second, exceeded.mfu) == (pytest.approx(20e9), None)
    unknown = apply_update(state, Update(events=(replace(work, flops=None),)))
    assert (unknown.flops_per_second, unknown.mfu) == (None, None)
    assert after(started(10), state=known).work is None


def test_what_a_step_is_and_why_that_is_not_known_are_said() -> None:
    work = WorkCounted(time=1.0, flops=7.7575e9, peak=130e9, source="measured on this machine, float32")
    words = "FLOPs per step 7.76 GFLOP; peak 130 GFLOP/s (measured on this machine, float32)"
    assert format_event(work, RunState()) == words
    assert (
        format_event(replace(work, peak=None, reason="no table"), RunState()) == "FLOPs per step 7.76 GFLOP; no table"
    )
    lost = replace(work, flops=None, peak=None, reason="the model has a loop")
    assert format_event(lost, RunState()) == "FLOPs per step unknown: the model has a loop"


def test_when_each_step_ended_and_what_its_learning_rate_was_is_known_also_after_training_went_back() -> None:
    state = apply_update(RunState(), Update(chunks=(chunk(0, [1, 1], started=100.0), chunk(2, [1, 1], started=200.0))))
    assert state.step_end_times.means.tolist() == [100.5, 101, 200.5, 201]
    rates = [LearningRateChanged(time=0.0, step=step, learning_rate=rate) for step, rate in ((0, 0.1), (3, 0.2))]
    state = apply_update(state, Update(events=tuple(rates)))
    assert state.learning_rates == ((0, 0.1), (3, 0.2))
    again = (started(2), LearningRateChanged(time=0.0, step=2, learning_rate=0.3))
    state = apply_update(state, Update(events=again, chunks=(chunk(2, [1], started=300.0),)))
    assert state.learning_rates == ((0, 0.1), (2, 0.3))
    state = apply_update(state, Update(events=(LearningRateChanged(time=0.0, step=2, learning_rate=0.4),)))
    assert state.learning_rates == ((0, 0.1), (2, 0.4))  # a step has one
    assert state.step_end_times.means.tolist() == [100.5, 101, 301]


def info(status: Status, pid: int = 1) -> RunInfo:
    return RunInfo("k7m2", Path("k7m2"), None, {}, created=0.0, host="h", pid=pid, status=status)


def ended(time: float, seconds: float, steps: int = 30) -> RunEnded:
    return RunEnded(
        time=time, outcome=Outcome.STOPPED, steps=steps, epochs=0, seconds=seconds, steps_per_second=5.0, metrics={}
    )


def test_the_pace_of_an_engine_is_not_that_of_another_whatever_the_order_of_reading() -> None:
    """A run that is opened after it went on has all events first, and then the chunks of both engines."""
    old = [chunk(first, [1.0] * 10, started=first, seconds=1.0) for first in (0, 10, 20)]
    events = (started(), built(), ended(31.0, 31.0), started(first_step=30, time=500.0), built())
    state = after(*events, chunks=old)
    assert state.steps_per_second is None
    assert state.remaining is None
    cold = chunk(30, [1.0] * 10, started=501.0, seconds=60.0)
    assert after(chunks=[cold], state=state).steps_per_second is None
    assert after(chunks=[cold, chunk(40, [1.0] * 10, started=561.0, seconds=0.5)], state=state).steps_per_second == 20.0


def test_the_pace_is_known_although_the_clock_was_set_back_between_two_engines() -> None:
    old = [chunk(first, [1.0] * 10, started=9000.0 + first, seconds=1.0) for first in (0, 10, 20)]
    state = after(started(time=9000.0), built(), chunks=old)
    state = after(started(first_step=30, time=100.0), state=state)
    new = [chunk(first, [1.0] * 10, started=70.0 + first, seconds=0.5) for first in (30, 40, 50)]
    state = after(chunks=new, state=state)
    assert state.steps_per_second == pytest.approx(20.0)


def test_the_time_of_a_run_is_that_of_all_its_engines_without_the_gaps_between_them() -> None:
    state = replace(after(started(), built(), ended(264.0, 264.0)), info=info(Status.STOPPED))
    assert state.elapsed(9999.0) == 264.0
    awaited = replace(state, info=info(Status.STARTING))
    assert awaited.elapsed(9999.0) == 264.0
    state = replace(after(started(first_step=30, time=10_000.0), state=awaited), info=info(Status.RUNNING))
    assert [state.elapsed(10_000.0 + seconds) for seconds in (0.0, 13.0)] == [264.0, 277.0]
    state = after(ended(10_020.0, 20.5), state=state)
    assert state.elapsed(10_020.0) == 284.5
    again = after(started(first_step=30, time=20_000.0), state=state)
    assert again.earlier_seconds == 284.5


def test_of_an_engine_that_ended_without_a_word_the_time_until_its_last_event_counts() -> None:
    lost = after(started(), built(), validated(20, 0.5), PhaseChanged(time=40.0, phase=Phase.TRAINING))
    lost = after(chunks=[chunk(20, [1.0] * 10, started=40.0, seconds=5.0)], state=lost)
    awaited = replace(lost, info=info(Status.STARTING, pid=2))
    assert awaited.elapsed(900.0) == 40.0
    state = after(started(first_step=20, time=1000.0), state=awaited)
    assert state.earlier_seconds == 40.0
    assert replace(state, info=info(Status.RUNNING)).elapsed(1003.0) == 43.0


def test_what_an_engine_was_that_is_gone_is_not_said_of_the_next() -> None:
    chunks = [chunk(first, [1.0] * 10, started=first, seconds=1.0) for first in (0, 10, 20)]
    state = after(started(), built(), chunks=chunks)
    assert replace(state, info=info(Status.RUNNING)).steps_per_second == pytest.approx(10.0)
    for taken_up in (info(Status.STARTING), info(Status.RUNNING, pid=2)):  # it has begun, and its event is not read yet
        awaited = replace(state, info=taken_up)
        assert (awaited.steps_per_second, awaited.remaining, awaited.flops_per_second) == (None, None, None)


def test_a_clock_that_is_set_back_makes_no_negative_time() -> None:
    state = replace(after(started(time=1000.0), built()), info=info(Status.RUNNING))
    assert state.elapsed(400.0) == 0.0
    lost = after(PhaseChanged(time=300.0, phase=Phase.TRAINING), state=state)
    assert after(started(first_step=5, time=310.0), state=lost).earlier_seconds == 0.0


def test_what_was_worked_before_is_not_known_to_who_has_not_read_it() -> None:
    state = after(started(first_step=30, time=1000.0))
    assert state.earlier_seconds is None
    assert replace(state, info=info(Status.RUNNING)).elapsed(1010.0) is None


def epoch_ended(epoch: int, step: int) -> EpochEnded:
    return EpochEnded(time=0.0, epoch=epoch, step=step, metrics={}, seconds=1.0)


@pytest.mark.parametrize("unknown", [0, None])
def test_the_steps_of_a_stream_are_known_once_an_epoch_has_ended(unknown: int | None) -> None:
    events = (started(), model_built(epochs=4, steps_per_epoch=unknown))
    state = apply_update(RunState(), Update(events=events, chunks=(chunk(0, [1.0] * 90, 0.0, 9.0),)))
    state = replace(state, info=RunInfo("r", Path("r"), None, {}, 0.0, "h", 1, Status.RUNNING))
    assert (state.total_steps, state.current_epoch, state.remaining) == (None, 1, None)
    more = Update(events=(epoch_ended(1, 100),), chunks=(chunk(90, [1.0] * 10, 9.0, 1.0),))
    state = apply_update(state, more)
    assert (state.total_steps, state.current_epoch) == (400, 2)
    assert state.remaining == pytest.approx(300 / (state.steps_per_second or 0))
    state = apply_update(state, Update(events=(epoch_ended(2, 240),), chunks=(chunk(100, [1.0] * 140, 10.0, 14.0),)))
    assert (state.total_steps, state.current_epoch) == (480, 3)


def test_the_accuracy_of_a_classification_counts_unless_the_run_names_another_metric() -> None:
    def with_points(*points: dict[str, float], **more: str) -> RunState:
        events = [
            Validated(time=0.0, epoch=epoch, step=100 * epoch, metrics=metrics, seconds=1.0)
            for epoch, metrics in enumerate(points, start=1)
        ]
        return apply_update(RunState(), Update(events=(model_built(**more), *events)))

    both = ({"loss": 0.5, "accuracy": 0.9}, {"loss": 0.4, "accuracy": 0.8}, {"loss": 0.6, "accuracy": math.nan})
    assert with_points().best is None
    assert (with_points(*both).monitor, with_points(*both).best) == ("validation_accuracy", (100, 0.9))
    named = with_points(*both, monitor="validation_loss")
    assert (named.monitor, named.best) == ("validation_loss", (200, 0.4))
    assert with_points(*both, task="segmentation").monitor == "validation_loss"
    assert with_points({"loss": 1.0, "mae": 2.0}).monitor == "validation_loss"
    warm = with_points(*both, {"temperature": 20.0}, {"temperature": 30.0}, monitor="validation_temperature")
    assert warm.best is None
    assert replace(warm, info=replace(info(Status.RUNNING), plan_values={"monitor_mode": "max"})).best == (500, 30.0)
    wide = replace(named, info=replace(info(Status.RUNNING), plan_values={"min_delta": 0.2}))
    assert wide.best == (100, 0.5)


def test_the_best_value_of_a_metric_of_training_is_the_one_of_an_epoch() -> None:
    epochs = [
        EpochEnded(time=0.0, epoch=epoch, step=100 * epoch, metrics={"accuracy": value}, seconds=1.0)
        for epoch, value in enumerate((0.5, 0.75, 0.7), start=1)
    ]
    better = Validated(time=0.0, epoch=3, step=300, metrics={"accuracy": 0.875}, seconds=1.0)
    state = apply_update(RunState(), Update(events=(model_built(monitor="accuracy"), *epochs, better)))
    assert (state.monitor, state.best) == ("accuracy", (200, 0.75))
