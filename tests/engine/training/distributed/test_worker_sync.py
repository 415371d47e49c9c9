"""Collective operations of a single worker; ``test_workers.py`` tests several processes."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from accel_engine import run
from accel_engine.errors import RunError
from accel_engine.events import CheckpointSaved, Event, Phase, PhaseChanged
from accel_engine.plan import Plan
from accel_engine.run.engine.commands import Command
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.commands.command_mailbox import CommandMailbox
from accel_engine.training.distributed.worker_sync import SharedCommands, WorkerSync, was_lost_early
from recorded_run import started


def test_strings_of_any_length_are_gathered() -> None:
    sync = WorkerSync(tf.distribute.get_strategy(), ClusterSpec(("a:1",)))
    for words in ("", "a", "größer als 漢字 ✓", "x" * 5000):
        assert sync.all_gather_text(words) == (words,)


def test_one_replica_per_worker_contributes() -> None:
    sync = WorkerSync(tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"]), ClusterSpec(("a:1",)))
    assert sync.all_gather_text("once") == ("once",)
    assert sync.all_gather(3.0, 4.0).tolist() == [[3.0, 4.0]]


def test_a_command_that_its_sender_has_withdrawn_reaches_no_worker() -> None:
    mailbox, withdrawn = CommandMailbox(), {1}
    sync = WorkerSync(tf.distribute.get_strategy(), ClusterSpec(("a:1",)))
    commands = SharedCommands(mailbox, sync, lambda command: command.id in withdrawn)
    for number in (1, 2):
        mailbox.post(Command(number, 0.0, "ann", "pause"))

    assert commands.take() is None
    taken = commands.take()
    assert taken is not None
    assert taken.id == 2


@pytest.mark.parametrize(("steps", "start"), [([30, 20], 20), ([20, 30], 20), ([0, 0], 0)])
def test_workers_continue_from_the_newest_checkpoint_that_all_of_them_have(
    monkeypatch: pytest.MonkeyPatch, steps: list[int], start: int
) -> None:
    sync = WorkerSync(tf.distribute.get_strategy(), ClusterSpec(("a:1",)))
    monkeypatch.setattr(sync, "all_gather", lambda *_: np.array([[step, 0.0] for step in steps]))
    assert sync.start_step(30) == start


def test_a_worker_without_checkpoints_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    sync = WorkerSync(tf.distribute.get_strategy(), ClusterSpec(("a:1",)))
    monkeypatch.setattr(sync, "all_gather", lambda *_: np.array([[3000.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(RunError, match=r"worker 1 has no checkpoint of this run, but worker 0 has .* step 3,000: copy"):
        sync.start_step(0)


@pytest.mark.parametrize(("lost_early", "start"), [([0, 1, 1], 0), ([0, 1, 0], None)])
def test_workers_start_anew_only_if_none_has_lost_its_checkpoints(
    monkeypatch: pytest.MonkeyPatch, lost_early: list[int], start: int | None
) -> None:
    sync = WorkerSync(tf.distribute.get_strategy(), ClusterSpec(("a:1",)))
    gathered = np.array([[20, lost_early[0]], [0, lost_early[1]], [0, lost_early[2]]], float)
    monkeypatch.setattr(sync, "all_gather", lambda *_: gathered)
    if start is None:
        with pytest.raises(RunError, match="worker 2 has no checkpoint of this run, but worker 0"):
            sync.start_step(20)
    else:
        assert sync.start_step(20) == start


TRAINS = PhaseChanged(time=1.0, phase=Phase.TRAINING)

SAVED = CheckpointSaved(time=1.0, epoch=1, step=5, path="checkpoints/step-5", seconds=0.1)


@pytest.mark.parametrize(
    ("sessions", "is_early"),
    [
        ([], False),  # another machine
        ([[]], False),  # it failed before training
        ([[TRAINS]], True),
        ([[TRAINS], []], True),
        ([[TRAINS, SAVED]], False),
        ([[TRAINS, SAVED, TRAINS], []], False),  # its files were deleted
        ([[TRAINS, SAVED], [TRAINS]], True),  # all have begun anew
    ],
)
def test_a_worker_knows_whether_it_was_lost_before_its_first_checkpoint(
    home: Path, sessions: list[list[Event]], is_early: bool
) -> None:
    directory = run.create(Plan(model="mlp"))
    for session in [*sessions, []]:
        with closing(run.RunWriter(directory)) as writer:
            writer.begin(started())
            for event in session:
                writer.write_event(event)
    assert was_lost_early(directory) is is_early
