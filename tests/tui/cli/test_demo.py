import io
import json
import os
import signal
import subprocess
import threading
import time
from contextlib import closing

import pytest

from accel_engine import run
from accel_engine.devices.device_types import Device, Inventory
from accel_engine.events import Outcome
from accel_engine.launch import engine_process
from accel_engine.run import Status
from accel_tui.cli import demo
from accel_tui.plan.demo_stages import WINDOW
from tui.cli.conftest import Engine
from tui.fake_engine import FakeEngine

ACTS = 6


class Engines:
    """Stands in for engines: each takes ten steps a dispatch until it is told to stop."""

    def __init__(self) -> None:
        self.environments = []
        self.running = 0
        self.act = self.train

    def start(self, directory, environment):
        assert not self.running, "one after the other"
        self.running += 1
        self.environments.append(dict(environment))
        thread = threading.Thread(target=self._work, args=(directory,))
        thread.start()
        return self._Process(thread)

    def _work(self, directory):
        engine = Engine(directory)
        try:
            self.act(engine)
        finally:
            self.running -= 1

    def train(self, engine):
        """Dispatches that seem to take a second; steps enough to be compared, however slow the machine is."""
        engine.begin()
        at = time.time()
        while True:
            super(Engine, engine).chunk([0.5] * 10 * len(self.environments), seconds=1.0, at=at)
            at += 1.0
            if engine.step >= 2 * WINDOW and (commands := engine.writer.commands()):
                engine.reply(commands[0], "stopped", obeyed=True)
                engine.end(Outcome.STOPPED)
                return
            time.sleep(0.005)

    class _Process:
        def __init__(self, thread):
            self._thread = thread

        def wait(self, timeout=None):
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise subprocess.TimeoutExpired("engine", timeout)


@pytest.fixture(autouse=True)
def engines(monkeypatch):
    stand_in = Engines()
    monkeypatch.setattr(engine_process, "start", stand_in.start)
    monkeypatch.setattr(engine_process, "find_installation", lambda: engine_process.Installation("tensorflow", "2"))
    monkeypatch.setattr("accel_tui.cli.demo.detect", lambda: Inventory((Device("cpu:0", "cpu", "A CPU", cores=2),)))
    monkeypatch.setattr(demo, "WARM_UP", 0.0)
    monkeypatch.setattr(demo, "INTERVAL", 0.01)
    monkeypatch.setattr(demo, "OVERRUN", 1000.0)
    return stand_in


def test_every_way_is_trained_and_shown_as_a_bar(run_command, engines):
    result = run_command("demo --seconds 2")
    assert (result.status, result.err) == (0, "")
    assert result.lines[0].startswith("Training mlp on synthetic images, batch size 256, in 6 configurations")
    assert "No GPU or TPU was found" in result.out
    assert max(map(len, result.lines)) <= 80
    assert engines.environments[0]["TF_NUM_INTRAOP_THREADS"] == "1"
    assert engines.environments[1] == {"TF_NUM_INTRAOP_THREADS": "0"}  # all, whatever was faster in earlier runs
    assert not any(engines.environments[2:])
    bars = [line for line in result.lines if "\u2588" in line]
    assert [line.split()[-1] for line in bars] == ["1.00x", "2.00x", "3.00x", "4.00x", "5.00x", "6.00x"]
    assert "mean of the last 100: 0.500 for all configurations." in " ".join(result.out.split())
    runs = run.list_runs()
    assert len(runs) == ACTS
    assert {each.info.annotations.tags for each in runs} == {("demo",)}
    assert {each.status for each in runs} == {Status.STOPPED}


def test_as_json(run_command):
    found = [json.loads(line) for line in run_command("demo --seconds 2 --json").lines]
    assert [each["act"] for each in found] == [
        "one thread",
        "all 2 cores",
        "one thread per operation",
        "XLA",
        "bfloat16",
        "CPU in two, mirrored",
    ]
    assert found[2]["plan"]["threads"] == 1
    assert [each["speedup"] for each in found] == pytest.approx([1, 2, 3, 4, 5, 6], rel=1e-3)
    assert {each["accuracy"] for each in found} == {0.5}
    assert {each["run"] for each in found} == {each.id for each in run.list_runs()}


def test_a_way_that_fails_says_why_and_the_others_go_on(run_command, engines):
    def act(engine):
        if len(engines.environments) == 4:
            engine.begin()
            engine.end(Outcome.FAILED, "XLA cannot compile it")
        else:
            engines.train(engine)

    engines.act = act
    result = run_command("demo --seconds 2")
    assert result.status == 0
    assert "4/6 XLA: failed: XLA cannot compile it" in result.lines
    assert sum("\u2588" in line for line in result.lines) == 5


def test_nothing_is_shown_that_was_not_measured(run_command, engines):
    def act(engine):
        engine.begin()
        engine.end(Outcome.FAILED, "no memory")

    engines.act = act
    result = run_command("demo --seconds 2")
    assert result.status == 1
    assert "Nothing was measured." in result.lines
    assert "steps/s" not in result.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_shows_what_is_done_and_leaves_no_engine(run_command, engines, number):
    def act(engine):
        if len(engines.environments) == 3:
            os.kill(os.getpid(), number)
        engines.train(engine)

    engines.act = act
    result = run_command("demo --seconds 2")
    assert result.status == 130
    assert [line.split()[-1] for line in result.lines if "\u2588" in line] == ["1.00x", "2.00x"]
    missing = "one thread per operation, XLA, bfloat16, CPU in two, mirrored"
    assert f"Not measured: {missing} (interrupted)." in " ".join(result.out.split())
    assert engines.running == 0


def test_no_further_way_is_begun_when_the_time_is_over(run_command, monkeypatch):
    monkeypatch.setattr(demo, "OVERRUN", 0.0)
    result = run_command("demo --seconds 1")
    assert result.status == 0
    said = " ".join(result.out.split())
    missing = "all 2 cores, one thread per operation, XLA, bfloat16, CPU in two, mirrored"
    assert f"Not measured: {missing} (1 s were too short)." in said


def test_without_tensorflow_it_says_what_to_install(run_command, monkeypatch):
    monkeypatch.setattr(
        engine_process,
        "find_installation",
        lambda: engine_process.Installation(problem="no TensorFlow: pip install it"),
    )
    assert "pip install it" in run_command("demo").err
    assert run.list_runs() == []


def test_on_a_terminal_one_line_tells_of_the_way_that_trains(new_run, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    stage = demo._StageBar(stream, lambda: 80, "2/5 XLA")
    engine = new_run()
    engine.begin()
    FakeEngine.chunk(engine, [0.5] * 10, seconds=1.0, at=100.0)
    FakeEngine.chunk(engine, [0.5] * 10, seconds=1.0, at=101.0)
    stage.share = 0.5
    with closing(run.RunReader(engine.directory)) as reader:
        stage.show(reader.poll())
    engine.end()
    painted = stream.buffer.getvalue().decode()
    assert painted == "\u2501" * 8 + "\u2500" * 7 + "  2/5 XLA  10.0 steps/s  accuracy 0.5000"
    stage.clear()
    assert stream.buffer.getvalue().decode().endswith("\r\x1b[K")
