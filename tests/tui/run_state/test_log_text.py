"""What lines of a log say."""

import socket
import time
from types import SimpleNamespace

import pytest

from accel_engine.events import EpochEnded
from accel_tui.run_state.log_tail import LogLine
from accel_tui.run_state.log_text import EpochLines, Filter, Level, level_of, match_ranges
from accel_tui.run_state.state import RunState


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("2026-01-31 12:00:00.123456: I tensorflow/core/platform/cpu.cc:210] This binary", Level.INFO),
        ("2026-01-31 12:00:00.123456: W tensorflow/core/framework/op.cc:1] Skipping", Level.WARNING),
        ("2026-01-31 12:00:00.123456: E external/local_xla/stream.cc:467] Unable", Level.ERROR),
        ("W0000 00:00:1700000000.1  123 gpu.cc:2] Cannot dlopen", Level.WARNING),
        ("E0000 00:00:1700000000.1  123 gpu.cc:2] Cannot", Level.ERROR),
        ("WARNING:tensorflow:AutoGraph could not", Level.WARNING),
        ("/lib/keras/trainer.py:12: UserWarning: no data", Level.WARNING),
        ("Traceback (most recent call last):", Level.ERROR),
        ("tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM", Level.ERROR),
        ("worker 1 │ ValueError: no", Level.ERROR),
        ("an errorless life", Level.INFO),
        ("", Level.INFO),
    ],
)
def test_a_line_says_how_grave_it_is(text: str, level: Level) -> None:
    assert level_of(text) is level


def test_an_indented_line_belongs_to_the_one_before() -> None:
    assert level_of('  File "a.py", line 1', Level.ERROR) is Level.ERROR
    assert level_of("plain", Level.ERROR) is Level.INFO


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        (Filter(), True),
        (Filter(words="cannot OPEN"), True),
        (Filter(words="cannot close"), False),
        (Filter(words="-open"), False),
        (Filter(words="-close"), True),
        (Filter(words="-"), False),
        (Filter(Level.WARNING), True),
        (Filter(Level.ERROR), False),
    ],
)
def test_a_filter_takes_levels_and_words(wanted: Filter, passes: bool) -> None:
    assert wanted.passes("Cannot open the file", Level.WARNING) is passes


def test_a_text_is_found_in_any_case_and_as_it_is() -> None:
    assert match_ranges("a.b A.B axb", "a.B") == [(0, 3), (4, 7)]
    assert match_ranges("anything", "") == []


LATER = 1795973125.5
LOCAL = time.strftime("%Y-%m-%d %H:%M:%S.5: I x.cc:1] y", time.localtime(LATER))


@pytest.mark.parametrize(
    ("host", "text", "is_known"),
    [
        (socket.gethostname(), LOCAL, True),
        ("elsewhere", LOCAL, False),  # perhaps in another time zone
        ("elsewhere", f"I0000 00:00:{LATER}  123 x.cc:1] y", True),
    ],
    ids=["here", "elsewhere", "seconds"],
)
def test_an_epoch_stands_before_a_later_line_whose_time_is_known(host: str, text: str, is_known: bool) -> None:
    epoch = EpochEnded(time=LATER - 5, epoch=1, step=10, metrics={}, seconds=0.25)
    info = SimpleNamespace(has_engine=True, host=host)
    lines = EpochLines()
    lines.take(RunState(info=info, ended_epochs=(epoch,), step=20))  # type: ignore[arg-type]
    assert [line.is_epoch for line in lines.merged([LogLine(text, None)])] == ([True, False] if is_known else [False])
    assert len(lines.rest()) == (not is_known)
