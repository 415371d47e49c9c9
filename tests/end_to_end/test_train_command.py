"""``accel-tui train`` with real engines: what a script reads, and steering from another terminal."""

import json
import os
import re
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_engine import data
from accel_engine.events import KINDS
from accel_engine.run import RunReader, Status, find_run, list_runs
from accel_engine.run.store.database import RunDatabase
from end_to_end.terminal import Terminal

Wait = Callable[..., None]

TRAIN = ("train", "--model", "mlp", "--data", "digits", "--xla", "off", "--json")


def check_lines(lines: list[dict[str, Any]]) -> None:
    """Check that these are the lines of a run from its start to its end: their fields, their order, every step."""
    assert lines[0]["event"] == "run_started"
    assert lines[-1]["event"] == "run_ended"
    times = [line["time"] for line in lines]
    assert times == sorted(times)
    step = lines[0]["first_step"]
    for line in lines:
        if line["event"] == "steps":
            assert line["first_step"] == step
            assert line["count"] == len(line["loss"]) == len(line["accuracy"]) > 0
            step += line["count"]
        else:
            expected = {field.name for field in fields(KINDS[line["event"]])} - {"metrics"}
            assert expected <= line.keys(), line
        if line["event"] in ("epoch_ended", "validated"):
            assert line["step"] == step
            assert {"loss", "accuracy"} <= line.keys()
    assert lines[-1]["steps"] == step


def numbers(lines: list[dict[str, Any]], kind: str, name: str) -> list[Any]:
    return [line[name] for line in lines if line["event"] == kind]


def call(program: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=240, check=False)


def bmp(shades: np.ndarray[Any, Any]) -> bytes:
    """An uncompressed bitmap: three bytes a pixel, rows from the bottom, whose length here divides by four."""
    rows = np.repeat(shades[::-1, :, np.newaxis], 3, axis=2).tobytes()
    height, width = shades.shape
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(rows), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54) + header + rows


def test_a_script_reads_every_step_of_a_run_that_generalises_within_its_default_epochs_and_asks_its_model(
    program: Path, tmp_path: Path
) -> None:
    done = call(program, "train", "--model", "cnn", "--data", "digits", "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check_lines(lines)
    (built,) = (line for line in lines if line["event"] == "model_built")
    ended = lines[-1]
    assert ended["outcome"] == "finished"
    assert ended["steps"] == 10 * built["steps_per_epoch"]
    assert numbers(lines, "epoch_ended", "epoch") == numbers(lines, "validated", "epoch") == [*range(1, 11)]
    assert max(numbers(lines, "validated", "accuracy")) >= 0.97
    assert ended["validation_accuracy"] >= 0.97
    phases = numbers(lines, "phase_changed", "phase")
    for phase in ("importing", "building", "training", "validating", "checkpointing"):
        assert phase in phases
    losses = [loss for line in lines if line["event"] == "steps" for loss in line["loss"]]
    assert len(losses) == ended["steps"]
    assert sum(losses[-20:]) < sum(losses[:20]) / 4

    train = data.load("digits", data.DataOptions()).train
    for row in range(4):
        large = train.inputs[row][:, :, 0].repeat(4, axis=0).repeat(4, axis=1)
        (tmp_path / f"{row}.bmp").write_bytes(bmp(large))
    (tmp_path / "bad.bmp").write_text("no image")
    files = [str(tmp_path / f"{row}.bmp") for row in range(4)]
    told = call(program, "predict", "last", *files, str(tmp_path / "bad.bmp"), "--top", "1", "--json")
    assert told.returncode == 1
    assert "not a valid PNG, JPEG, GIF, BMP, WebP, TIFF or PNM file" in told.stderr
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    right = [line["top"][0]["label"] == str(label) for line, label in zip(lines[:4], train.targets[:4], strict=True)]
    assert sum(right) >= 3  # by chance, one in 270
    assert lines[0]["notes"] == ["converted to grayscale", "resized from 32x32 to 8x8"]
    assert lines[4]["top"] == []

    with closing(RunDatabase(find_run("last"))) as database:
        database.execute("DELETE FROM main.diagnostics")  # as of a run without validation
    with Terminal([program, "watch", "last"], columns=100, rows=30) as terminal:
        terminal.wait_for("Finished")
        terminal.send("w")
        terminal.wait_for("No validation results were recorded")
        terminal.send("V")
        terminal.wait_for(lambda text: re.search(r"accuracy [01]\.", text), timeout=240)
        terminal.send("4")
        terminal.wait_for("highest loss first")
        terminal.send("q")
        assert terminal.wait_closed() == 0


class Foreground:
    """``accel-tui train`` in the foreground of another terminal, read line by line."""

    def __init__(self, program: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [program, *TRAIN, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[dict[str, Any]] = []

    def read_until(self, kind: str, **values: Any) -> dict[str, Any]:
        """Read on to the next line of a kind with these values."""
        assert self.process.stdout is not None
        for text in self.process.stdout:
            line: dict[str, Any] = json.loads(text)
            self.lines.append(line)
            if line["event"] == kind and all(line[name] == value for name, value in values.items()):
                return line
        pytest.fail(f"no {kind} with {values} before the end")


@pytest.fixture
def foreground(program: Path) -> Iterator[Foreground]:
    watched = Foreground(program, "--epochs", "100000", "--validation", "off", "--name", "long")
    yield watched
    watched.process.kill()
    watched.process.communicate()


def test_a_run_is_steered_from_another_terminal_and_stopped_by_ctrl_c(program: Path, foreground: Foreground) -> None:
    def ask(*words: str) -> str:
        done = subprocess.run([program, *words], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status() -> Status:
        with closing(RunReader(find_run("long"))) as reader:
            return reader.info().status

    foreground.read_until("steps")
    assert status() is Status.RUNNING
    ask("pause", "long")
    foreground.read_until("phase_changed", phase="paused")
    assert "learning rate" in ask("set", "long", "--learning-rate", "0.0005").lower()
    changed = foreground.read_until("learning_rate_changed")
    assert changed["learning_rate"] == pytest.approx(0.0005)
    ask("resume", "long")
    assert foreground.read_until("steps")["first_step"] == changed["step"]
    ask("checkpoint", "long")
    saved = foreground.read_until("checkpoint_saved")
    foreground.process.send_signal(signal.SIGINT)
    ended = foreground.read_until("run_ended")
    assert foreground.process.wait(120) == 0
    assert ended["outcome"] == "stopped"
    check_lines(foreground.lines)
    assert numbers(foreground.lines, "checkpoint_saved", "step")[-1] == ended["steps"] >= saved["step"]
    assert foreground.process.stderr is not None
    assert "stopping with a checkpoint" in foreground.process.stderr.read()
    assert status() is Status.STOPPED
    answered = [line for line in foreground.lines if line["event"] == "command_answered"]
    assert [line["command"] for line in answered] == ["pause", "learning_rate", "resume", "checkpoint", "stop"]
    assert all(line["obeyed"] for line in answered)


@pytest.mark.campaign  # test_dashboard.py hangs up on an engine, too
def test_a_run_goes_on_after_its_terminal_is_closed(program: Path, foreground: Foreground, wait_until: Wait) -> None:
    """The command ends; the engine does not, even if the hangup reaches it."""
    foreground.read_until("steps")
    foreground.process.send_signal(signal.SIGHUP)
    assert foreground.process.wait(120) == -signal.SIGHUP
    os.kill(foreground.lines[0]["pid"], signal.SIGHUP)
    steps = list_runs()[0].steps
    wait_until(lambda: list_runs()[0].steps > steps, "more steps without a terminal")
    subprocess.run([program, "stop", "long"], capture_output=True, timeout=120, check=True)
