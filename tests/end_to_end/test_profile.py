"""``accel-tui profile`` on live runs, with real engines, a real script and TensorFlow's profiler."""

import json
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from accel_engine.run import Command, RunReader, Status, find_run, list_runs, send_command
from accel_engine.run.store.database import reading

pytestmark = pytest.mark.campaign

SCRIPT = """
import keras, numpy as np
model = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(10, name="scores")])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(np.ones((640, 8, 8, 1), "float32"), np.zeros(640, "int32"), batch_size=32, epochs=100_000, verbose=0)
print("left")
"""


def run(program: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    words = [str(program), *map(str, arguments)]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False)


def trains(directory: Path) -> bool:
    with closing(RunReader(directory)) as reader:
        assert reader.info().status.live, (directory / "log.txt").read_text()
        return reader.new_steps() is not None


def profiled(program: Path, directory: Path, *options: object) -> dict[str, Any]:
    done = run(program, "profile", directory, "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert list((directory / found["trace"]).glob("*.xplane.pb"))
    assert 0 < found["busy"] <= found["seconds"]
    return found


def test_a_live_run_of_a_plan_with_xla_and_without(program: Path, wait_until: Callable[..., None]) -> None:
    for xla in ("off", "on"):
        options = ("--model", "mlp", "--epochs", 100_000, "--validation", "off", "--xla", xla, "--detach")
        started = run(program, "train", *options)
        assert started.returncode == 0, started.stderr
        directory = find_run(started.stdout.strip())
        wait_until(lambda directory=directory: trains(directory), "the first steps", timeout=120)

        found = profiled(program, directory, "--seconds", 0.5)
        assert found["steps"] > 0
        assert {"dense", "dense_1"} & {group["name"] for group in found["groups"]}
        assert any(operation["flops"] for operation in found["operations"])
        command = [program, "profile", directory, "--seconds", "20"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as first:
            wait_until(lambda directory=directory: is_asked(directory), "the command", timeout=60)
            second = run(program, "profile", directory)
            send_command(directory, "stop")
            said = first.communicate(timeout=120)[0]
        assert (second.returncode, "already" in second.stderr) == (1, True), second.stderr
        assert (first.returncode, "the trace is shorter." in said) == (0, True), (
            said
        )  # also if its operations were too many


def is_asked(directory: Path) -> bool:
    """Whether there is a command without an answer."""
    with reading(directory) as database:
        return bool(database.unanswered(Command))


def test_a_live_script(program: Path, tmp_path: Path, wait_until: Callable[..., None]) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    script = subprocess.Popen([program, "run", "train.py"], cwd=tmp_path, text=True, **streams)
    wait_until(lambda: bool(list_runs()), "the run", timeout=60)
    directory = list_runs()[0].directory
    wait_until(lambda: trains(directory), "the first steps", timeout=120)

    found = profiled(program, directory, "--seconds", 0.5)
    assert found["steps"] is None
    assert found["grouped_by"] == "name scopes"
    assert any("scores" in operation["name"] or "dense" in operation["name"] for operation in found["operations"])
    send_command(directory, "stop")
    assert script.communicate(timeout=120)[0].splitlines()[-1] == "left"
    with closing(RunReader(directory)) as reader:
        assert reader.info().status is Status.STOPPED
