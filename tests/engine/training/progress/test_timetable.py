"""What is due after some steps, epochs and minutes."""

import math

import pytest

from accel_engine.plan import Plan
from accel_engine.plan.interval import Interval
from accel_engine.training.progress.timetable import Recurring, Timetable


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    ("interval", "due"),
    [
        (Interval(1, "epochs"), [(10, 1), (20, 2), (30, 3)]),
        (Interval(2, "epochs"), [(20, 2)]),
        (Interval(15, "steps"), [(15, None), (30, 3)]),
    ],
)
def test_what_is_due_by_steps_and_epochs(interval: Interval, due: list[tuple[int, int | None]]) -> None:
    recurring = Recurring(interval)
    found = [(step, step // 10 if step % 10 == 0 else None) for step in range(1, 31)]
    assert [(step, epoch) for step, epoch in found if recurring.is_due(step, epoch)] == due


def test_steps_until_the_next_of_several() -> None:
    timetable = Timetable(Plan(validation_every="4 steps", checkpoint_every="6 steps"))
    assert [timetable.steps_until_next(step) for step in (0, 1, 4, 5, 6, 11)] == [4, 3, 2, 1, 2, 1]
    assert Timetable(Plan()).steps_until_next(3) is None
    assert not Timetable(Plan()).by_clock
    assert Timetable(Plan(time_limit="1h")).by_clock
    assert Timetable(Plan(checkpoint_every="2 minutes")).by_clock
    assert [Timetable(Plan(checkpoint_every=every)).saves_every_epoch for every in ("auto", "1 epoch")] == [True, False]


def test_the_next_epoch_of_several() -> None:
    timetable = Timetable(Plan(validation_every="4 epochs", checkpoint_every="6 epochs"))
    assert [timetable.next_epoch(epoch) for epoch in (1, 4, 5, 6, 7, 12)] == [4, 4, 6, 6, 8, 12]
    assert Timetable(Plan()).next_epoch(3) == 3
    assert Timetable(Plan(validation="end")).next_epoch(3) == math.inf
    assert Timetable(Plan(validation_every="5 steps", checkpoint_every="1 minute")).next_epoch(3) == math.inf


def test_minutes_and_the_time_limit_go_by_the_clock() -> None:
    clock = Clock()
    timetable = Timetable(Plan(validation_every="2 minutes", time_limit="1h30m"), now=clock)
    assert timetable.by_clock
    clock.seconds = 119
    assert not timetable.validation.is_due(5, None)
    clock.seconds = 120
    assert timetable.validation.is_due(5, None)
    assert timetable.is_due_by_clock(5)
    timetable.validation.done(5)
    assert not timetable.validation.is_due(5, None)
    assert not timetable.is_due_by_clock(6)
    clock.seconds = 5399
    assert not timetable.is_over
    clock.seconds = 5400
    assert timetable.is_over
    assert timetable.is_due_by_clock(6)


def test_a_later_try_has_what_is_left_of_the_time_limit() -> None:
    clock = Clock()
    clock.seconds = 1000
    assert Timetable(Plan(time_limit="1h"), now=clock, since=100).seconds_left == 3600 - 900
    assert Timetable(Plan(time_limit="1h"), now=clock).seconds_left == 3600


def test_nothing_is_validated_on_the_way_if_only_the_end_counts() -> None:
    assert not Timetable(Plan(validation="end")).validation.is_due(10, 1)


def test_what_was_done_after_some_steps_is_not_due_after_them() -> None:
    recurring = Recurring(Interval(5, "steps"))
    assert recurring.is_due(10, None)
    recurring.done(10)
    assert not recurring.is_due(10, 1)
    assert recurring.is_due(15, None)
