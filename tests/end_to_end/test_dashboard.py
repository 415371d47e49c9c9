"""The dashboard as a person meets it: the installed program in a real terminal, real engines, real bad luck."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from accel_engine.events import CheckpointSaved, Event, Phase, PhaseChanged
from accel_engine.plan import SPECS
from accel_engine.run import RunReader, Status, find_run
from accel_engine.run.runs.listing import summarize
from end_to_end.terminal import Terminal
from tui.fake_engine import FakeEngine

Wait = Callable[..., None]

IMPORTING = 180.0
"""Seconds that the import of TensorFlow and the first steps may take on a busy machine."""


@pytest.fixture
def open_terminal(program: Path) -> Iterator[Callable[..., Terminal]]:
    """Open the program in a separate terminal; all are closed at the end."""
    terminals: list[Terminal] = []

    def open_(*arguments: str, columns: int = 120, rows: int = 40) -> Terminal:
        terminals.append(Terminal([program, *arguments], columns=columns, rows=rows))
        return terminals[-1]

    yield open_
    for terminal in terminals:
        terminal.close()


def start_long_run(terminal: Terminal) -> Path:
    """Fill the form in with mouse and keys so that training goes on until it is stopped; start it."""
    terminal.wait_for("in 14 layers", timeout=IMPORTING)  # the last thing to find its place on the form
    terminal.click("epochs", right=17)
    terminal.wait_for(SPECS["epochs"].doc)
    terminal.send("end", "ctrl+u")
    terminal.wait_for("must be an integer")
    terminal.send("100000")
    terminal.wait_for("accel-tui train --epochs 100000")
    terminal.send("ctrl+s")
    terminal.wait_for("● training", timeout=IMPORTING)
    return find_run("last")


def loss(text: str) -> float:
    """The latest training loss that is on the screen."""
    found = re.search(r"loss .*step ([0-9.]+)", text)
    return float(found[1]) if found else float("inf")


def steps(directory: Path) -> int:
    return summarize(directory).steps


def status(directory: Path) -> Status | None:
    return summarize(directory).status


def events(directory: Path) -> tuple[Event, ...]:
    with closing(RunReader(directory)) as reader:
        return reader.poll().events


def assert_left_as_found(terminal: Terminal) -> None:
    assert terminal.wait_closed() == 0
    assert terminal.altered == []
    assert terminal.modes == terminal.modes_before


def test_open_see_the_cpu_train_and_a_run_that_survives_its_dashboard_until_another_stops_it(
    open_terminal: Callable[..., Terminal], wait_until: Wait
) -> None:
    first = open_terminal()
    first.wait_for(lambda text: re.search(r"cpu:0 .* \d+%", text))
    directory = start_long_run(first)
    first.wait_for(lambda text: loss(text) < 0.7)
    losses = [float(value) for chunk in chunks(directory) for value in chunk]
    assert sum(losses[:5]) / 5 > 1.5

    first.send("p")
    first.wait_for("‖ paused")
    paused_at = steps(directory)
    first.send("C")
    wait_until(lambda: any(isinstance(event, CheckpointSaved) for event in events(directory)), "a checkpoint")
    assert steps(directory) == paused_at

    second = open_terminal("watch", "last", columns=80, rows=24)
    third = open_terminal("watch", "last")
    second.wait_for("‖ paused")
    second.send("p")
    for terminal in (first, second):
        terminal.wait_for("● training")
    wait_until(lambda: steps(directory) > paused_at, "more steps")

    first.kill()
    with closing(RunReader(directory)) as reader:
        os.kill(reader.info().pid, signal.SIGHUP)
    after_death = steps(directory)
    wait_until(lambda: steps(directory) > after_death, "more steps after the dashboard's death")

    third.wait_for("● training")
    third.send("q")
    third.wait_for("Quit accel-tui?")
    third.send("d")
    assert_left_as_found(third)
    before_leaving = steps(directory)
    wait_until(lambda: steps(directory) > before_leaving, "more steps after leaving")
    assert status(directory) is Status.RUNNING

    second.send("s")
    second.wait_for("Stop training?")
    second.send("s")
    second.wait_for("■ stopped")
    second.wait_for("Stopped after")
    assert status(directory) is Status.STOPPED
    second.send("q")
    assert_left_as_found(second)


def chunks(directory: Path) -> list[list[float]]:
    with closing(RunReader(directory)) as reader:
        return [chunk.series["loss"].tolist() for chunk in reader.poll().chunks]


@pytest.mark.campaign  # test_headless.py kills an engine too, and tests of screens show lost runs
def test_killed_engine_is_shown_as_lost_and_resumed_from_its_checkpoint(
    program: Path, open_terminal: Callable[..., Terminal], wait_until: Wait
) -> None:
    arguments = ("train", "--model", "mlp", "--epochs", "100000", "--xla", "off", "--validation", "off", "--detach")
    subprocess.run([program, *arguments], check=True, capture_output=True, timeout=120)
    directory = find_run("last")
    terminal = open_terminal("watch", "last")
    terminal.wait_for("● training", timeout=IMPORTING)
    wait_until(lambda: any(isinstance(event, CheckpointSaved) for event in events(directory)), "a checkpoint")

    with closing(RunReader(directory)) as reader:
        pid = reader.info().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    terminal.wait_for("✗ lost")
    terminal.wait_for(r"R continues from the checkpoint")
    lost_at = steps(directory)

    terminal.send("R")
    wait_until(lambda: status(directory) is Status.RUNNING, "the run to be taken up", timeout=IMPORTING)
    terminal.wait_for("● training", timeout=IMPORTING)
    wait_until(lambda: steps(directory) > lost_at, "more steps than before")
    with closing(RunReader(directory)) as reader:
        starts = [event.first_step for event in reader.poll().events if event.kind() == "run_started"]  # type: ignore[attr-defined]
    assert starts[0] == 0
    assert 0 < starts[1] <= lost_at

    terminal.send("q")
    terminal.wait_for("Quit accel-tui?")
    terminal.send("s")
    assert_left_as_found(terminal)
    wait_until(lambda: status(directory) is Status.STOPPED, "the run to stop")
    assert not any(isinstance(event, PhaseChanged) and event.phase is Phase.VALIDATING for event in events(directory))


def test_keys_typed_before_the_form_is_there_are_not_lost(open_terminal: Callable[..., Terminal]) -> None:
    terminal = open_terminal()
    terminal.send("q")
    assert_left_as_found(terminal)


def test_losing_the_terminal_ends_the_dashboard_and_its_warm_engine(
    open_terminal: Callable[..., Terminal], wait_until: Wait
) -> None:
    terminal = open_terminal()
    terminal.wait_for("engine: ")
    engines = psutil.Process(terminal.process.pid).children()
    assert engines
    terminal.hang_up()
    terminal.wait_closed()
    wait_until(lambda: not any(engine.is_running() for engine in engines), "the warm engine to end")


def test_a_terminal_may_grow_be_left_for_the_shell_and_is_left_as_it_was(
    open_terminal: Callable[..., Terminal], wait_until: Wait
) -> None:
    """On a run that has ended, beside which no engine starts."""
    with closing(FakeEngine().begin().build().train(20)) as engine:
        engine.end()
    terminal = open_terminal("watch", "last", columns=50, rows=12)
    terminal.wait_for("80x24")
    terminal.resize(80, 24)
    terminal.wait_for("Finished after")

    terminal.process.send_signal(signal.SIGCONT)  # without a pause before, as a hang-up does, too
    terminal.send("?")
    terminal.wait_for("esc closes")
    assert terminal.raw.count(b"\x1b[?1049h") == 1
    terminal.send("escape")
    terminal.wait_for(lambda text: "esc closes" not in text)

    process = psutil.Process(terminal.process.pid)
    terminal.send("ctrl+z")
    wait_until(lambda: process.status() == psutil.STATUS_STOPPED, "a pause")
    wait_until(lambda: terminal.altered == [], "the terminal as it was")
    assert terminal.modes == terminal.modes_before
    before = len(terminal.raw)
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: b"Finished" in terminal.raw[before:], "the run, painted anew")
    assert "alternate screen" in terminal.altered

    process.send_signal(signal.SIGTERM)
    terminal.wait_closed()
    assert terminal.altered == []
    assert terminal.modes == terminal.modes_before
