"""Training waits for a full disk wherever it writes, and then goes on as if nothing had been."""

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from accel_engine.events import CheckpointSaved, Outcome, Warned
from accel_engine.plan import Plan
from accel_engine.run.directory import disk_problem
from accel_engine.run.directory.disk_problem import DiskProblem
from accel_engine.run.directory.run_paths import CHECKPOINTS, MODEL
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.writing.writer import RunWriter
from accel_engine.training.commands.command_mailbox import StopRequested
from full_disk import database_error

from .conftest import Gym

PLAN = Plan(model="mlp", epochs=2, batch_size=256, last_batch="drop")
"""Ten steps."""


class Failing:
    """A function of a class that fails some times, and works afterwards.

    Args:
        patch: Restores it after the test.
        owner: The class.
        name: The function's name.
        fail: Called in its place, and raises.
        times: How often it fails.
        after: How often it works before.
    """

    def __init__(
        self, patch: pytest.MonkeyPatch, owner: type, name: str, fail: Callable[..., Any], times: int, after: int = 0
    ) -> None:
        self.calls = 0
        works = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            is_failing = after < self.calls <= after + times
            return (fail if is_failing else works)(*arguments, **named)

        patch.setattr(owner, name, call)


def database_full(*_: Any) -> None:
    raise database_error(sqlite3.SQLITE_FULL)


def half_a_checkpoint(_: Any, path: str, *__: Any) -> None:
    leftover = Path(f"{path}_temp")
    leftover.mkdir(parents=True)
    (leftover / "part-00000-of-00001.data-00000-of-00001.tempstate1").write_bytes(bytes(9000))
    Path(f"{path}.index").write_bytes(b"half")
    raise tf.errors.ResourceExhaustedError(None, None, f"{leftover}; {os.strerror(errno.ENOSPC)} [Op:SaveV2]")


def half_a_model(_: Any, path: Path) -> None:
    path.write_bytes(bytes(9000))
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_problem, "RETRY_SECONDS", 0.001)
    monkeypatch.setattr(disk_problem, "RETRY_SHARE", 1.0)


def test_nothing_is_lost_wherever_the_disk_is_full(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = gym.train_once(PLAN)
    Failing(monkeypatch, RunDatabase, "add_chunk", database_full, times=3, after=2)
    Failing(monkeypatch, tf.train.Checkpoint, "write", half_a_checkpoint, times=2)
    Failing(monkeypatch, keras.Model, "save", half_a_model, times=2)

    trained = gym.train(PLAN)

    assert trained.ended.outcome is Outcome.FINISHED
    assert trained.series.keys() == undisturbed.series.keys()
    for name, values in undisturbed.series.items():
        np.testing.assert_array_equal(trained.series[name], values)
    assert [event.step for event in trained.all(CheckpointSaved)] == [5, 10]
    files = {path.name.partition(".")[0] for path in (trained.directory / CHECKPOINTS).iterdir()}
    assert files == {"step-5", "step-10"}
    assert keras.models.load_model(trained.directory / MODEL).count_params() == 9610
    assert not list(trained.directory.glob("partial*"))
    warnings = [event.message for event in trained.all(Warned)]
    assert [message.startswith("disk full: waited ") for message in warnings] == [True] * 3


def test_a_checkpoint_that_does_not_fit_can_be_given_up(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: list[RunWriter] = []
    find = RunWriter.__init__

    def remember(self: RunWriter, *arguments: Any, **named: Any) -> None:
        find(self, *arguments, **named)
        writers.append(self)

    def fail_and_stop(*arguments: Any) -> None:
        command = type("Command", (), {"name": "stop", "origin": "stop requested by ann@box"})()
        writers[-1].disk.stop_waiting(lambda problem: StopRequested(command, problem))
        half_a_checkpoint(*arguments)

    monkeypatch.setattr(RunWriter, "__init__", remember)
    Failing(monkeypatch, tf.train.Checkpoint, "write", fail_and_stop, times=9)

    trained = gym.train(PLAN)

    assert trained.ended.outcome is Outcome.STOPPED
    assert trained.ended.reason == f"stop requested by ann@box; {DiskProblem.FULL}: not all was saved"
    assert trained.ended.hint == "there is no checkpoint to continue from"
    assert len(trained.series["loss"]) == trained.ended.steps == 5
    assert list((trained.directory / CHECKPOINTS).iterdir()) == []


def test_a_model_that_cannot_be_serialized_is_no_problem_of_the_disk(gym: Gym, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise NotImplementedError("get_config")

    saving = Failing(monkeypatch, keras.Model, "save", refuse, times=9)
    trained = gym.train(PLAN)
    assert (trained.ended.outcome, saving.calls) == (Outcome.FINISHED, 1)
    assert "could not be saved as model.keras" in trained.only(Warned).message


def test_a_plan_that_needs_more_than_is_free_is_told_before_the_first_step(
    gym: Gym, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accel_engine.run.directory.disk_space.free_bytes", lambda _: 6 << 20)
    trained = gym.train(PLAN)
    message = trained.only(Warned).message
    # 9,610 weights and two slots of each, in three checkpoints, another while it is written, and the model
    assert message == (
        "the run takes about 6.6 MiB on the disk, which has 6.0 MiB free: training waits when it is full"
    )
