"""When a terminal is sent another frame."""

import pytest

from accel_tui.terminal.incremental_app import (
    FAST_REPLY_SECONDS,
    MAX_QUEUED_WRITES,
    QUERY_INTERVAL_BYTES,
    QUERY_INTERVAL_SECONDS,
    REPLY_TIMEOUT_SECONDS,
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


def answer(flow: FlowControl) -> None:
    """Answer a question that is asked now."""
    number = flow.frame_sent(QUERY_INTERVAL_BYTES)
    assert number
    flow.reply_received(number)


@pytest.fixture
def flow(clock: Clock) -> FlowControl:
    """A link whose terminal has answered once, promptly."""
    flow = FlowControl(clock)
    answer(flow)
    return flow


def test_a_terminal_that_keeps_up_is_never_waited_for(flow: FlowControl, clock: Clock) -> None:
    for _ in range(100):
        assert flow.can_send(0)
        number = flow.frame_sent(QUERY_INTERVAL_BYTES)
        assert number
        assert flow.can_send(0)  # for the answer to a key, with the question still on its way
        assert flow.frame_sent(QUERY_INTERVAL_BYTES) is None  # one question at a time
        clock.now += FAST_REPLY_SECONDS / 2
        flow.reply_received(number)


def test_a_terminal_that_keeps_up_is_asked_seldom_for_small_frames(flow: FlowControl, clock: Clock) -> None:
    assert flow.frame_sent(10) is None
    assert flow.frame_sent(QUERY_INTERVAL_BYTES) is not None
    flow.reply_received(2)
    clock.now += QUERY_INTERVAL_SECONDS
    assert flow.frame_sent(10) is not None


def test_a_late_answer_is_waited_for(flow: FlowControl, clock: Clock) -> None:
    number = flow.frame_sent(QUERY_INTERVAL_BYTES)
    clock.now += FAST_REPLY_SECONDS * 1.1
    assert not flow.can_send(0)
    flow.reply_received(number or 0)
    assert flow.can_send(0)


def test_one_frame_at_a_time_goes_over_a_slow_link_until_it_recovers(flow: FlowControl, clock: Clock) -> None:
    number = flow.frame_sent(QUERY_INTERVAL_BYTES)
    clock.now += 2 * FAST_REPLY_SECONDS
    flow.reply_received(number or 0)
    number = flow.frame_sent(QUERY_INTERVAL_BYTES)
    assert not flow.can_send(0)
    clock.now += FAST_REPLY_SECONDS / 2
    flow.reply_received(number or 0)
    flow.frame_sent(QUERY_INTERVAL_BYTES)
    assert flow.can_send(0)


def test_a_lost_answer_is_not_waited_for_without_end(flow: FlowControl, clock: Clock) -> None:
    lost = flow.frame_sent(QUERY_INTERVAL_BYTES)
    clock.now += REPLY_TIMEOUT_SECONDS * 1.1
    assert flow.can_send(0)
    number = flow.frame_sent(QUERY_INTERVAL_BYTES)
    assert number not in (None, lost)
    flow.reply_received(lost or 0)  # late after all: it says nothing of the frames that came after it
    clock.now += FAST_REPLY_SECONDS * 1.1
    assert not flow.can_send(0)
    flow.reply_received(number or 0)
    assert flow.can_send(0)


def test_a_terminal_that_never_answers_is_judged_by_what_waits(clock: Clock) -> None:
    flow = FlowControl(clock)
    flow.frame_sent(QUERY_INTERVAL_BYTES)
    clock.now += 60
    assert flow.can_send(MAX_QUEUED_WRITES)
    assert not flow.can_send(MAX_QUEUED_WRITES + 1)


def test_an_answer_that_was_not_asked_for_changes_nothing(flow: FlowControl) -> None:
    flow.reply_received(1)
    assert flow.can_send(0)


def test_an_answer_is_expected_only_of_a_terminal_that_has_answered(flow: FlowControl, clock: Clock) -> None:
    assert not flow.expects_reply
    number = flow.frame_sent(QUERY_INTERVAL_BYTES)
    assert flow.expects_reply
    flow.reply_received(number or 0)
    assert not flow.expects_reply
    silent = FlowControl(clock)
    silent.frame_sent(QUERY_INTERVAL_BYTES)
    assert not silent.expects_reply
