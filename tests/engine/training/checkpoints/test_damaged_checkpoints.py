"""A run whose newest checkpoint is damaged continues from the one before, exactly, and says what it trains again."""

import shutil
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest

import damaged_runs
from accel_engine.errors import RunError
from accel_engine.events import CheckpointSaved, CommandAnswered, Outcome, Warned
from accel_engine.plan import Plan
from accel_engine.run.damage.repair import repair_run
from accel_engine.run.directory.checkpoint_files import find_damage, has_checksums
from accel_engine.run.directory.run_paths import CHECKPOINTS, MODEL, checkpoint_steps
from accel_engine.trained.open_trained import open_trained
from accel_engine.training.checkpoints.checkpoint import Finiteness

from ..conftest import Gym, Trained

PLAN = Plan(
    model="mlp",
    epochs=2,
    batch_size=256,
    last_batch="drop",
    optimizer="sgd",
    checkpoint_every="2 steps",
    keep_checkpoints=3,
)
"""Ten steps."""

DATA, INDEX, CHECKSUMS = ".data-00000-of-00001", ".index", ".json"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def garbage(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00garbage" * 20)


@pytest.fixture
def stopped(gym: Gym, tmp_path: Path) -> Path:
    """A run that was stopped after eight steps, with checkpoints of steps 4, 6 and 8; each test has a copy."""
    if "stopped" not in _SHARED:
        _SHARED["stopped"] = gym.train(PLAN, at={8: [("stop",)]})
    directory = _SHARED["stopped"].directory
    assert checkpoint_steps(directory) == [4, 6, 8]
    return Path(shutil.copytree(directory, tmp_path / directory.name))


_SHARED: dict[str, Trained] = {}


def continued(gym: Gym, run: Path, step: int) -> str:
    """Continue a run, which must take up at ``step`` and end as if it had never stopped; returns its warnings."""
    resumed = gym.train(PLAN, run=run)
    assert resumed.ended.outcome is Outcome.FINISHED, resumed.ended.reason
    np.testing.assert_array_equal(resumed.series["loss"], gym.train_once(PLAN).series["loss"])
    assert checkpoint_steps(run) == [6, 8, 10]
    assert not any(find_damage(run / CHECKPOINTS, each) for each in (6, 8, 10))
    messages = [event.message for event in resumed.all(Warned) if event.severity == "warning"]
    lost = [each for each in messages if not each.startswith("the checksums")]
    assert all(f"continuing from step {step}; steps {step + 1} to 8 are trained again" in each for each in lost)
    return " ".join(messages)


@pytest.mark.parametrize(
    ("suffix", "harm", "words"),
    [
        (DATA, cut, "step-8.data-00000-of-00001 has 1,000 bytes instead of"),
        (DATA, flip, "the checksum of step-8.data-00000-of-00001 does not match"),
    ],
    ids=["cut", "flipped"],
)
def test_the_checkpoint_before_a_damaged_one_is_taken(
    gym: Gym, stopped: Path, suffix: str, harm: Callable[[Path], None], words: str
) -> None:
    harm(stopped / CHECKPOINTS / f"step-8{suffix}")
    said = continued(gym, stopped, 6)
    assert f"the checkpoint of step 8 is damaged ({words}" in said


def test_without_checksums_tensorflow_tells_which_checkpoint_is_whole(gym: Gym, stopped: Path) -> None:
    folder = stopped / CHECKPOINTS
    for step in (4, 6, 8):
        (folder / f"step-{step}{CHECKSUMS}").unlink()
    cut(folder / f"step-8{DATA}")
    garbage(folder / f"step-6{INDEX}")
    said = continued(gym, stopped, 4)
    assert "the checkpoint of step 8 is damaged (TensorFlow cannot read its files)" in said
    assert "the checkpoint of step 6 is damaged (TensorFlow cannot read its files)" in said


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b'model_checkpoint_path: "step-99"\n'])
def test_garbage_in_the_files_that_describe_checkpoints_is_written_anew(gym: Gym, stopped: Path, text: bytes) -> None:
    (stopped / CHECKPOINTS / "checkpoint").write_bytes(text)  # TensorFlow's name; no version has written it
    (stopped / CHECKPOINTS / f"step-8{CHECKSUMS}").write_bytes(text)
    assert not has_checksums(stopped / CHECKPOINTS, 8)
    assert "the checksums of the checkpoint of step 8 were damaged: its files could not be" in continued(
        gym, stopped, 8
    )
    assert has_checksums(stopped / CHECKPOINTS, 8)


def test_nothing_is_deleted_if_all_checkpoints_are_damaged(gym: Gym, stopped: Path) -> None:
    for step in (4, 6, 8):
        flip(stopped / CHECKPOINTS / f"step-{step}{DATA}")
    before = sorted(stopped.rglob("*"))
    ended = gym.train(PLAN, run=stopped).ended
    assert ended.outcome is Outcome.FAILED
    assert ended.reason.startswith(f"run {stopped.name} has no whole checkpoint: the checkpoint of step 8 is damaged (")
    assert "Nothing was deleted: put back the files of checkpoints/ from a copy, or start a new run" in ended.reason
    assert {*before} <= {*stopped.rglob("*")}
    with pytest.raises(RunError, match="has no whole checkpoint"):
        open_trained(stopped, data=None)


def test_predictions_pass_over_a_damaged_checkpoint_and_say_so(gym: Gym, stopped: Path) -> None:
    flip(stopped / CHECKPOINTS / f"step-8{DATA}")
    model = open_trained(stopped, data=None)
    assert model.step == 6
    (note,) = model.notes
    assert note.startswith("the checkpoint of step 8 is damaged")
    assert note.endswith(": step 6 is used")


def test_what_a_killed_engine_left_is_removed(gym: Gym, stopped: Path) -> None:
    folder = stopped / CHECKPOINTS
    (folder / "step-9_temp").mkdir()
    left = [
        stopped / "partial.keras",
        folder / "step-9_temp" / "part-00000-of-00001.data-00000-of-00001.tempstate1",
        folder / f"step-2{DATA}",
        folder / f"step-3{CHECKSUMS}",
    ]
    for path in left:
        path.touch()
    (folder / "notes.txt").write_text("mine")
    assert not continued(gym, stopped, 8)
    assert not any(path.exists() for path in left)
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "step-9_temp").exists()


def test_a_checkpoint_without_checksums_is_passed_over_if_it_is_not_finite(
    gym: Gym, stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stopped / CHECKPOINTS / f"step-8{CHECKSUMS}").unlink()
    failures, asked = Finiteness.failures, []

    def first_is_not_finite(self: Finiteness) -> list[keras.Variable]:
        asked.append(self)
        return failures(self) if len(asked) > 1 else [keras.Variable([np.nan])]

    monkeypatch.setattr(Finiteness, "failures", first_is_not_finite)
    said = continued(gym, stopped, 6)
    assert "the checkpoint of step 8 is damaged (variable is not finite" in said


def test_a_diverged_run_keeps_its_last_finite_checkpoint(gym: Gym) -> None:
    plan = PLAN.replace(optimizer="sgd", learning_rate=0.01, validation="off", keep_checkpoints=1, on_nan="continue")
    diverged = gym.train(plan, at={4: [("learning_rate", 1e30)], 8: [("checkpoint",)]})

    assert diverged.ended.outcome is Outcome.FINISHED
    assert [event.step for event in diverged.all(CheckpointSaved)] == [2, 4]
    assert checkpoint_steps(diverged.directory) == [4]
    assert diverged.ended.model_step == 4
    for weight in keras.models.load_model(diverged.directory / MODEL).weights:
        assert np.isfinite(weight).all()
    messages = [event.message for event in diverged.all(Warned)]
    assert any("no checkpoint is saved, as " in each and "at step 4" in each for each in messages)
    assert any("the model has the weights of its last checkpoint, of step 4" in each for each in messages)
    (answer,) = (event for event in diverged.all(CommandAnswered) if event.command == "checkpoint")
    assert not answer.obeyed
    assert answer.answer.startswith("no checkpoint is saved, as ")


def test_a_repaired_run_continues_exactly_from_its_last_whole_checkpoint(gym: Gym, stopped: Path) -> None:
    """Of the damaged one, the last steps, events, the header of the file and a checkpoint are lost."""
    flip(stopped / CHECKPOINTS / f"step-8{DATA}")
    damaged_runs.change(stopped, "UPDATE chunk SET loss = x'00' WHERE id = (SELECT max(id) FROM chunk)")
    damaged_runs.change(stopped, "UPDATE event SET body = '{' WHERE kind IN ('epoch_ended', 'run_ended')")
    damaged_runs.change(stopped, "UPDATE meta SET value = '{' WHERE key = 'created'")
    damaged_runs.overwrite(stopped, 0, bytes(100))

    done = repair_run(stopped)

    assert done
    assert checkpoint_steps(done.directory) == [4, 6]
    assert min(done.rows[table].lost for table in ("meta", "event", "chunk")) > 0
    assert "earlier checkpoint" not in continued(gym, done.directory, 6)
