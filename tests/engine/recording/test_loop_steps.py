"""Steps, epochs and validations among what a loop logs."""

import math
import threading
from typing import Any

import numpy as np
import pytest

from accel_engine import clock
from accel_engine.events import EpochEnded, Event, Validated
from accel_engine.recording.loop_steps import MAX_JUMP, LoopSteps
from accel_engine.recording.recorder_thread import PendingSteps
from accel_engine.run.store.schema import MAX_STEP

Item = PendingSteps | Event


def rows(*rows: tuple[Any, float, dict[str, Any]], of: LoopSteps | None = None) -> list[Item]:
    return list((of or LoopSteps(0, 0)).items(rows))


def values(item: Item) -> dict[str, list[float]]:
    assert isinstance(item, PendingSteps)
    found: dict[str, Any] = dict(item.series)
    assert {len(each) for each in found.values()} == {item.count}
    return {name: each.tolist() for name, each in found.items()}


def times(item: Item) -> tuple[float, float]:
    assert isinstance(item, PendingSteps)
    return item.started, item.ended


def messages(steps: LoopSteps) -> list[str]:
    return [warned.message for warned in steps.take_warnings()]


def test_steps_follow_those_of_the_run_and_the_first_takes_no_time() -> None:
    steps = LoopSteps(100, 0)
    first, rest = rows((0, 5.0, {"loss": 3.0}), (1, 6.0, {"loss": 2.0}), (2, 7.0, {"loss": 1.0}), of=steps)
    (later,) = rows((3, 9.0, {"loss": 0.5}), of=steps)

    assert [item.first_step for item in (first, rest, later) if isinstance(item, PendingSteps)] == [100, 101, 103]
    assert [values(item) for item in (first, rest, later)] == [
        {"loss": [3.0]},
        {"loss": [2.0, 1.0]},
        {"loss": [0.5]},
    ]
    assert [times(item) for item in (first, rest, later)] == [(5.0, 5.0), (5.0, 7.0), (7.0, 9.0)]


def test_a_step_that_is_written_again_keeps_its_time() -> None:
    steps = LoopSteps(0, 0)
    rows((0, 1.0, {"loss": 3.0}), (1, 2.0, {"loss": 2.0}), of=steps)
    again, later = rows((1, 5.0, {"top": 1.0}), (2, 6.0, {"loss": 1.0}), of=steps)

    assert (values(again), times(again)) == ({"loss": [2.0], "top": [1.0]}, (2.0, 2.0))
    assert (values(later), times(later)) == ({"loss": [1.0]}, (2.0, 6.0))


def test_the_speed_is_that_after_the_first_step() -> None:
    steps = LoopSteps(10, 0)
    assert steps.steps_per_second == 0.0
    rows((2, 1.0, {"loss": 1.0}), of=steps)
    assert steps.steps_per_second == 0.0
    rows((4, 1.0, {"loss": 1.0}), of=steps)
    assert steps.steps_per_second == 0.0
    rows((8, 4.0, {"loss": 1.0}), of=steps)
    assert steps.steps_per_second == 2.0


def test_values_that_are_logged_at_once_have_no_speed() -> None:
    at_once = LoopSteps(0, 0)
    written = rows(*((step, 1.0 + step * 1.7e-6, {"loss": 0.0}) for step in range(200)), of=at_once)  # 588,000 a second
    assert at_once.steps_per_second == 0.0
    assert [times(item)[1] - times(item)[0] for item in written] == [0.0, 0.0]

    whole_file = LoopSteps(0, 0)  # whatever time that takes
    rows(*((step, 1.0 + step * 1e-5, {"loss": 0.0}) for step in range(60_000)), of=whole_file)
    assert whole_file.steps_per_second == 0.0

    scanned = LoopSteps(0, 0)  # a thousand steps a call, which a compiled loop can take
    rows(*((step * 1000, 1.0 + step * 1e-3, {"loss": 0.0}) for step in range(1001)), of=scanned)
    assert scanned.steps_per_second == pytest.approx(1e6)


def test_steps_have_a_largest_number_and_a_largest_gap() -> None:
    steps = LoopSteps(2, 0)
    assert steps.step_of(MAX_STEP - 3) == MAX_STEP - 1
    assert steps.step_of(0) == 2
    assert steps.step_of(MAX_STEP - 2) is None
    assert messages(steps) == [f"a step is left out, as a step is a whole number from 0: {MAX_STEP - 2:,} is too large"]
    assert [item.first_step for item in rows((MAX_JUMP - 2, 1.0, {"a": 1.0}), of=LoopSteps(0, 0))] == [MAX_JUMP - 2]  # type: ignore[union-attr]
    assert not rows((MAX_JUMP - 1, 1.0, {"a": 1.0}), of=(far := LoopSteps(0, 0)))
    assert len(messages(far)) == 1
    assert not messages(far)


def test_a_step_that_goes_back_is_told_as_the_script_counts() -> None:
    steps = LoopSteps(100, 0)
    rows((5, 1.0, {"a": 1.0}), (3, 2.0, {"a": 1.0}), (1 << 30, 3.0, {"a": 1.0}), of=steps)

    assert messages(steps) == [
        "step 3 is left out, as it comes after step 5: steps must rise",
        "step 1,073,741,824 is left out, as it comes 10,000,000 steps after the last or more: "
        "count updates, not examples or tokens",
    ]


def test_epochs_have_means_and_times_and_follow_those_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 12.0, 15.0])
    ours, real = threading.get_ident(), clock.now  # a thread of a test before may read the clock, too
    monkeypatch.setattr(clock, "now", lambda: next(now) if threading.get_ident() == ours else real())
    steps = LoopSteps(100, 7)
    found = rows(
        (0, 1.0, {"epoch": 1, "loss": 4.0}),
        (1, 2.0, {"epoch": 1, "loss": 2.0, "val_loss": 0.5}),
        (2, 3.0, {"epoch": 2, "loss": 1.0}),
        of=steps,
    )
    found += steps.end_epoch()
    found += steps.end_epoch()

    assert [event for event in found if isinstance(event, EpochEnded)] == [
        EpochEnded(time=12.0, epoch=8, step=102, metrics={"loss": 3.0}, seconds=2.0),
        EpochEnded(time=15.0, epoch=9, step=103, metrics={"loss": 1.0}, seconds=3.0),
    ]
    (validated,) = (event for event in found if isinstance(event, Validated))
    assert (validated.time, validated.epoch, validated.step, validated.seconds) == (2.0, 7, 102, 0.0)
    assert steps.epochs == 9
    assert steps.metrics == {"loss": 1.0, "validation_loss": 0.5}
    kinds = [type(item) for item in found]
    assert kinds.index(EpochEnded) > [type(item) for item in found].index(Validated) > kinds.index(PendingSteps)


def test_epochs_count_from_zero_if_the_first_is_zero() -> None:
    for first in (0, 1):
        steps = LoopSteps(0, 3)
        found = [
            event for epoch in range(3) for event in rows((epoch, 1.0, {"a": 1.0, "epoch": first + epoch}), of=steps)
        ]
        assert [event.epoch for event in found if isinstance(event, EpochEnded)] == [4, 5]


@pytest.mark.parametrize("within", [False, True], ids=["a call of its own", "with the last step"])
def test_an_epoch_whose_number_comes_last_has_the_steps_before_it(within: bool) -> None:
    steps = LoopSteps(0, 0)
    logged: list[tuple[int, float, dict[str, Any]]] = []
    for step in range(30):
        loss, number = {"loss": 3.0 - step // 10}, {"val_loss": 1.0, "epoch": step // 10}
        ends = step % 10 == 9
        logged.append((step, 1.0, loss | number if within and ends else loss))
        logged += [] if within or not ends else [(step, 1.0, number)]
    found = [*rows(*logged, of=steps), *steps.end_epoch()]

    ended = [(each.epoch, each.step, each.metrics) for each in found if isinstance(each, EpochEnded)]
    assert ended == [(epoch, 10 * epoch, {"loss": 4.0 - epoch}) for epoch in (1, 2, 3)]


def test_an_epoch_begins_with_the_step_that_its_number_is_logged_for() -> None:
    steps = LoopSteps(0, 0)
    logged = [(step, 1.0, each) for step in range(6) for each in ({"loss": step // 3 + 1.0}, {"epoch": step // 3})]
    found = [*rows(*logged, of=steps), *steps.end_epoch()]

    ended = [(each.epoch, each.step, each.metrics) for each in found if isinstance(each, EpochEnded)]
    assert ended == [(1, 3, {"loss": 1.0}), (2, 6, {"loss": 2.0})]


@pytest.mark.parametrize("epoch", [math.nan, math.inf, np.arange(2)])
def test_an_epoch_that_is_no_number_is_none(epoch: Any) -> None:
    steps = LoopSteps(0, 0)
    rows((0, 1.0, {"loss": 1.0, "epoch": epoch}), of=steps)

    assert not list(steps.end_epoch())
    assert not messages(steps)


def test_an_epoch_without_steps_does_not_end() -> None:
    steps = LoopSteps(0, 0)

    assert not rows((0, 1.0, {"epoch": 0}), (0, 1.0, {"epoch": 1}), of=steps)


def test_a_metric_stays_what_it_is_when_it_comes_again() -> None:
    steps = LoopSteps(0, 0)
    logged = {"loss": 1.0, "val/loss": 2.0, "lr": 0.5, "value": 3.0, "validation": 4.0, "epoch": 0}
    for step in range(3):
        found = rows((step, 1.0, logged), of=steps)
        (validated,) = (event for event in found if isinstance(event, Validated))
        assert validated.metrics == {"loss": 2.0}
        (written,) = (values(item) for item in found if isinstance(item, PendingSteps))
        assert written == {"loss": [1.0], "learning_rate": [0.5], "value": [3.0], "validation": [4.0]}
    assert not messages(steps)


def test_an_array_in_place_of_a_number_has_a_series_per_element() -> None:
    steps = LoopSteps(0, 0)
    rows((0, 1.0, {"f1": 1.0}), of=steps)
    (item,) = rows((1, 2.0, {"f1": np.array([2.0, 3.0])}), of=steps)

    assert values(item) == {"f1_0": [2.0], "f1_1": [3.0]}
