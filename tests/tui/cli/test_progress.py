import io
from dataclasses import replace

import pyte
import pytest

from accel_engine import clock
from accel_engine.events import (
    MicroBatchesTried,
    Outcome,
    Phase,
    PhaseChanged,
    RunEnded,
    RunStarted,
    Validated,
    WorkCounted,
    XlaTried,
)
from accel_engine.run import RunReader, Update
from accel_engine.run.store import steps
from accel_tui.cli.event_text import format_event
from accel_tui.cli.follow_run import view_for
from accel_tui.cli.progress import Bar, JsonLines, Log, progress
from accel_tui.run_state.pace import StepRate
from accel_tui.run_state.state import RunState


class Stream(io.StringIO):
    """A terminal, or a file, that forgets nothing."""

    def __init__(self, encoding="utf-8", tty=True):
        super().__init__()
        self._encoding = encoding
        self._tty = tty

    @property
    def encoding(self):
        return self._encoding

    def isatty(self):
        return self._tty


def screen(stream):
    """What a terminal of 80 columns shows after all that was written."""
    emulator = pyte.Screen(80, 24)
    pyte.Stream(emulator).feed(stream.getvalue().replace("\n", "\r\n"))
    return [line.rstrip() for line in emulator.display if line.strip()]


@pytest.fixture
def follower(new_run):
    engine = new_run(name="mine")
    reader = RunReader(engine.directory)
    yield engine, reader
    engine.writer.close()
    reader.close()


@pytest.fixture
def colourless(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")


def test_the_bar_stays_below_the_lines_and_grows(follower, colourless, monkeypatch):
    monkeypatch.setattr(steps, "MIN_RATE_SECONDS", 1e-9)
    engine, reader = follower
    stream = Stream()
    bar = Bar(stream, lambda: (80, 24))
    engine.begin()
    bar.show(reader.poll())
    first = screen(stream)
    assert first[-4].startswith("61,706 parameters")
    assert "epoch 1/2" in first[-1]
    assert "\u2501" not in first[-1]
    engine.chunk([2.0, 1.0, 0.5, 0.125])
    engine.chunk([0.125] * 2)
    bar.show(reader.poll())
    second = screen(stream)
    assert second[:-1] == first[:-1]
    assert second[-1].index("epoch") == first[-1].index("epoch")
    width = second[-1].index("epoch") - 2
    assert second[-1].count("\u2501") / width == pytest.approx(0.75, abs=1 / width)
    assert "loss 0.1250  accuracy 0.500" in second[-1]
    assert "left" in second[-1]
    assert len(second[-1]) <= 79
    engine.epoch(1)
    engine.end()
    bar.show(reader.poll())
    third = screen(stream)
    assert third[-1].startswith("finished at step 10")
    assert not any("\u2501" in line for line in third)


def test_the_bar_makes_room_for_a_message(follower, colourless):
    engine, reader = follower
    stream = Stream()
    bar = Bar(stream, lambda: (80, 24))
    engine.begin()
    bar.show(reader.poll())
    bar.clear()
    assert not any("epoch 1/2" in line for line in screen(stream))
    bar.show(Update())
    assert "epoch 1/2" in screen(stream)[-1]


def test_before_the_first_step_the_bar_tells_the_phase():
    stream = Stream()
    bar = Bar(stream, lambda: (80, 24))
    bar.show(Update(events=(PhaseChanged(time=0.0, phase=Phase.IMPORTING, detail="TensorFlow"),)))
    assert screen(stream)[-1].startswith("importing ")


def test_the_bar_tells_times_by_the_clock_of_the_run_s_engine(follower):
    engine, reader = follower
    engine.begin()
    info = replace(reader.info(), clock_offset=clock.OFFSET + 3600)  # the wall clock was set back since it began
    stream = Stream()
    importing = PhaseChanged(time=info.now(), phase=Phase.IMPORTING, detail="TensorFlow")
    Bar(stream, lambda: (80, 24)).show(Update(events=(importing,)), info)
    assert screen(stream)[-1].startswith("importing 0:00")


def test_the_bar_of_a_run_that_goes_on_begins_with_the_epoch_of_its_next_step(follower, colourless):
    engine, reader = follower
    reader.poll()
    stream = Stream()
    engine.begin(first_step=4)
    Bar(stream, lambda: (80, 24)).show(reader.poll())
    assert "epoch 2/2" in screen(stream)[-1]


@pytest.mark.parametrize("width", [12, 20, 40, 60, 80, 200])
def test_the_bar_fits_any_terminal(follower, colourless, width):
    engine, reader = follower
    stream = Stream()
    engine.begin()
    engine.chunk([1.0])
    Bar(stream, lambda: (width, 24)).show(reader.poll())
    assert len(stream.getvalue().rpartition("\n")[2]) < width


@pytest.mark.parametrize(("encoding", "locale"), [("ascii", "C.UTF-8"), ("utf-8", "C")])
def test_a_terminal_without_unicode_gets_a_bar_of_ascii(follower, colourless, monkeypatch, encoding, locale):
    monkeypatch.setenv("LC_ALL", locale)
    engine, reader = follower
    stream = Stream(encoding=encoding)
    engine.begin()
    engine.chunk([1.0, 1.0])
    Bar(stream, lambda: (80, 24)).show(reader.poll())
    assert screen(stream)[-1].startswith("--")
    assert stream.getvalue().isascii()


def test_colours_are_left_out_when_not_wanted(follower, monkeypatch):
    engine, reader = follower
    engine.begin()
    update = reader.poll()
    coloured, plain = Stream(), Stream()
    monkeypatch.delenv("NO_COLOR", raising=False)
    Bar(coloured, lambda: (80, 24)).show(update)
    monkeypatch.setenv("NO_COLOR", "1")
    Bar(plain, lambda: (80, 24)).show(update)
    assert "\x1b[90m" in coloured.getvalue()
    assert "\x1b" not in plain.getvalue()


def test_a_log_has_a_line_every_few_seconds(follower):
    engine, reader = follower
    now = [0.0]
    stream = Stream(tty=False)
    log = Log(stream, clock=lambda: now[0])
    engine.begin()
    log.show(reader.poll())
    before = len(stream.getvalue().splitlines())
    for _ in range(100):  # ten seconds
        now[0] += 0.1
        engine.chunk([1.0])
        log.show(reader.poll())
    lines = stream.getvalue().splitlines()[before:]
    assert 1 <= len(lines) <= 2
    assert all("epoch" in line and "loss 1.0000" in line for line in lines)
    assert "\x1b" not in stream.getvalue()


def test_a_log_is_silent_while_a_run_is_paused(follower):
    engine, reader = follower
    now = [0.0]
    stream = Stream(tty=False)
    log = Log(stream, clock=lambda: now[0])
    engine.begin()
    engine.say(PhaseChanged, phase=Phase.PAUSED)
    log.show(reader.poll())
    before = stream.getvalue()
    now[0] = 60.0
    log.show(reader.poll())
    assert stream.getvalue() == before


def test_a_server_that_takes_no_steps_of_its_own_tells_none(follower):
    engine, reader = follower
    now = [0.0]
    stream = Stream(tty=False)
    log = Log(stream, clock=lambda: now[0])
    engine.say(PhaseChanged, phase=Phase.TRAINING, detail="storing weights for the coordinator")
    log.show(reader.poll())
    assert stream.getvalue().endswith(" storing weights for the coordinator\n")
    before = stream.getvalue()
    now[0] = 60.0
    log.show(reader.poll())
    assert stream.getvalue() == before
    ended = RunEnded(
        time=0.0, outcome=Outcome.FINISHED, steps=0, epochs=0, seconds=5.0, steps_per_second=0.0, metrics={}
    )
    assert format_event(ended, RunState()) == "finished after 0:05"


def test_a_validation_without_an_epoch_of_its_own_is_told_alone():
    event = Validated(time=0.0, epoch=3, step=9, metrics={"loss": 0.5}, seconds=0.1)
    assert format_event(event, RunState()) == "step 9  validation loss 0.5000"


def test_a_validation_tells_how_much_of_the_patience_is_used():
    plan = {"patience": 5}
    started = RunStarted(time=0.0, run="r", name="", plan=plan, first_step=0, pid=1, host="", versions={})
    event = Validated(time=0.0, epoch=3, step=9, metrics={"loss": 0.5}, seconds=0.1, waited=2)
    told = format_event(event, RunState(started=started))
    assert told == "step 9  validation loss 0.5000  (2 of 5 without improvement)"
    assert "improvement" not in format_event(replace(event, waited=0), RunState(started=started))
    assert "improvement" not in format_event(event, RunState())


def test_slow_steps_are_told_apart():
    event = MicroBatchesTried(time=0.0, step=9, micro_batches=4, tried=4, whole=0.25, split=0.4, remembered=False)
    assert format_event(event, RunState()) == "micro-batches 4 per step: 0.40 steps/s with 4, 0.25 without"


def test_a_trial_says_what_it_is_worth():
    event = XlaTried(time=0.0, step=9, xla=True, plain=1000.0, compiled=4000.0, remembered=False)
    assert format_event(event, RunState()) == "XLA on: 4.00k steps/s with it, 1.00k without"
    earlier = format_event(replace(event, remembered=True), RunState())
    assert earlier.endswith(" (measured by an earlier run)")
    busy = format_event(replace(event, settled=False), RunState())
    assert busy.endswith(" (other programs used the machine; this will be measured again)")
    without = replace(event, xla=False, compiled=0.0, reason="XLA finds no libdevice")
    refused = format_event(without, RunState())
    assert refused == "XLA off: it cannot compile the steps: XLA finds no libdevice"


def test_the_view_is_what_fits(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    tty, file = Stream(), Stream(tty=False)
    assert type(view_for(tty, as_json=False, plain=False)) is Bar
    assert type(view_for(file, as_json=False, plain=False)) is Log
    assert type(view_for(tty, as_json=False, plain=True)) is Log
    assert type(view_for(tty, as_json=True, plain=False)) is JsonLines
    monkeypatch.setenv("TERM", "dumb")
    assert type(view_for(tty, as_json=False, plain=False)) is Log


def test_the_use_of_the_devices_is_said_where_there_is_room():
    state = RunState(
        phase=PhaseChanged(time=0.0, phase=Phase.TRAINING),
        step_rate=StepRate(recent=((100, 10.0),)),
        work=WorkCounted(time=1.0, flops=2e9, peak=80e9),
    )
    assert progress(state) == "step 0  10.0 steps/s  MFU 25%"
    assert progress(state, 30) == "step 0  10.0 steps/s  MFU 25%"
    assert progress(state, 28) == "step 0  10.0 steps/s"
