"""The installed command without a screen: from the shell's side."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accel_engine.events import CheckpointSaved, Event, RunEnded
from accel_engine.run import RunReader, Status, find_run

LONG = ("--model", "mlp", "--epochs", "100000", "--validation", "off", "--xla", "off")
"""A run that goes on until it is ended."""


def run(program: Path, *arguments: str, timeout: float = 240.0) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end."""
    return subprocess.run(
        [program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
    )


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def test_killed_engine_is_told_as_lost_and_its_run_goes_on_from_its_checkpoint(
    program: Path, wait_until: Callable[..., None]
) -> None:
    detached = run(program, "train", *LONG, "--checkpoint-every", "1 epoch", "--detach")
    assert detached.returncode == 0, detached.stderr
    directory = find_run(detached.stdout.strip())
    reader = RunReader(directory)
    said: list[Event] = []

    def checkpoints() -> list[CheckpointSaved]:
        said.extend(reader.poll().events)
        assert not any(isinstance(event, RunEnded) for event in said), (directory / "log.txt").read_text()
        return [event for event in said if isinstance(event, CheckpointSaved)]

    wait_until(lambda: len(checkpoints()) >= 2, "two checkpoints")
    pid = reader.info().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: reader.info().status is Status.LOST, "the run to count as lost")
    epochs = checkpoints()[-1].epoch + 2
    reader.close()

    asked = run(program, "stop", "last")
    assert asked.returncode == 1
    assert "lost" in asked.stderr

    resumed = run(program, "continue", "last", "--epochs", str(epochs), "--json")
    assert resumed.returncode == 0, resumed.stderr
    started = next(line for line in lines(resumed.stdout) if line["event"] == "run_started")
    assert started["first_step"] > 0


def test_what_cannot_be_done_is_told_in_words(program: Path) -> None:
    done = run(program, "train", "--model", "nlp")
    assert done.returncode == 2
    assert "did you mean mlp" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_without_a_terminal_the_dashboard_points_to_train(program: Path) -> None:
    done = run(program)
    assert done.returncode == 2
    assert "terminal" in done.stderr
    assert "accel-tui train" in done.stderr
    assert done.stdout == ""
