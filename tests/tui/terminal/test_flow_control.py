"""When a terminal is sent another frame."""

import pytest

from accel_tui.terminal.flow_control import (
    MOST_WAITING,
    PATIENCE_SECONDS,
    PROMPT_SECONDS,
    UNASKED_BYTES,
    UNASKED_SECONDS,
    FlowControl,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def answer(link: FlowControl) -> None:
    """Answer a question that is asked now."""
    number = link.sent(UNASKED_BYTES)
    assert number
    link.answered(number)


@pytest.fixture
def link(clock: Clock) -> FlowControl:
    """A link whose terminal has answered once, promptly."""
    link = FlowControl(clock)
    answer(link)
    return link


def test_a_terminal_that_keeps_up_is_never_waited_for(link: FlowControl, clock: Clock) -> None:
    for _ in range(100):
        assert link.has_room(0)
        number = link.sent(UNASKED_BYTES)
        assert number
        assert link.has_room(0)  # for the answer to a key, with the question still on its way
        assert link.sent(UNASKED_BYTES) is None  # one question at a time
        clock.now += PROMPT_SECONDS / 2
        link.answered(number)


def test_a_terminal_that_keeps_up_is_asked_seldom_for_small_frames(link: FlowControl, clock: Clock) -> None:
    assert link.sent(10) is None
    assert link.sent(UNASKED_BYTES) is not None
    link.answered(2)
    clock.now += UNASKED_SECONDS
    assert link.sent(10) is not None


def test_a_late_answer_is_waited_for(link: FlowControl, clock: Clock) -> None:
    number = link.sent(UNASKED_BYTES)
    clock.now += PROMPT_SECONDS * 1.1
    assert not link.has_room(0)
    link.answered(number or 0)
    assert link.has_room(0)


def test_one_frame_at_a_time_goes_over_a_slow_link_until_it_recovers(link: FlowControl, clock: Clock) -> None:
    number = link.sent(UNASKED_BYTES)
    clock.now += 2 * PROMPT_SECONDS
    link.answered(number or 0)
    number = link.sent(UNASKED_BYTES)
    assert not link.has_room(0)
    clock.now += PROMPT_SECONDS / 2
    link.answered(number or 0)
    link.sent(UNASKED_BYTES)
    assert link.has_room(0)


def test_a_lost_answer_is_not_waited_for_without_end(link: FlowControl, clock: Clock) -> None:
    lost = link.sent(UNASKED_BYTES)
    clock.now += PATIENCE_SECONDS * 1.1
    assert link.has_room(0)
    number = link.sent(UNASKED_BYTES)
    assert number not in (None, lost)
    link.answered(lost or 0)  # late after all: it says nothing of the frames that came after it
    clock.now += PROMPT_SECONDS * 1.1
    assert not link.has_room(0)
    link.answered(number or 0)
    assert link.has_room(0)


def test_a_terminal_that_never_answers_is_judged_by_what_waits(clock: Clock) -> None:
    link = FlowControl(clock)
    link.sent(UNASKED_BYTES)
    clock.now += 60
    assert link.has_room(MOST_WAITING)
    assert not link.has_room(MOST_WAITING + 1)


def test_an_answer_that_was_not_asked_for_changes_nothing(link: FlowControl) -> None:
    link.answered(1)
    assert link.has_room(0)


def test_an_answer_is_expected_only_of_a_terminal_that_has_answered(link: FlowControl, clock: Clock) -> None:
    assert not link.expects
    number = link.sent(UNASKED_BYTES)
    assert link.expects
    link.answered(number or 0)
    assert not link.expects
    silent = FlowControl(clock)
    silent.sent(UNASKED_BYTES)
    assert not silent.expects
