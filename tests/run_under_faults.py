"""A whole life of a small run, without TensorFlow, in which a file operation fails; it must be none the worse."""

import math
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

from accel_engine.devices.device_types import Reading, Sample
from accel_engine.errors import AccelError
from accel_engine.events import CheckpointSaved, EpochEnded, Outcome, RunEnded
from accel_engine.files import replacing
from accel_engine.plan import Plan
from accel_engine.run import RunReader, RunWriter, Status, create, list_runs, send_command
from accel_engine.run.directory import disk_problem
from accel_engine.run.directory.checkpoint_files import (
    checkpoint_path,
    delete_after,
    find_damage,
    prune,
    writing_checkpoint,
)
from accel_engine.run.directory.run_paths import CHECKPOINTS, LOCK, MODEL, checkpoint_steps
from accel_engine.run.media import LoggedText
from accel_engine.run.runs.creation import reopen
from accel_engine.run.runs.removal import remove
from accel_engine.run.store.annotations import rename_run, set_tags
from failing_files import FailingFiles
from recorded_run import started

PLAN = Plan(name="of faults")
OTHER = Plan(name="to be deleted")

_SHARD = "data-00000-of-00001"

STEPS, CHUNK, EPOCH, KEEP = 18, 3, 6, 2


def try_fault(number: int, fault: str, *, waits: bool) -> FailingFiles:
    """Let an operation fail in a run's life; returns the operations.

    Args:
        number: Which operation fails, from 1; 0 for none.
        fault: How.
        waits: Whether the engine waits for the disk, as it does; otherwise it ends with the error.

    Raises:
        AssertionError: The run has lost something, or cannot be read.
    """
    files = FailingFiles(number, fault)
    with failing(files), suppress(*(() if waits else (OSError,))):  # an engine explains the system's
        live(waits=waits)
    for run in list_runs():
        assert not run.problem, run.problem
    remains = Remains.of(recover())
    assert remains == EXPECTED, remains
    return files


@contextmanager
def failing(files: FailingFiles) -> Iterator[FailingFiles]:
    """Let operations fail inside the ``with`` block, which an error for users may end; nothing waits for a second."""
    with (
        mock.patch.multiple(disk_problem, RETRY_SECONDS=0.0, RETRY_SHARE=1e6),
        suppress(AccelError),
        files.active(),
    ):
        yield files


def live(*, waits: bool) -> None:
    """Create a run, use it in every way, and train it to its end."""
    directory = create(PLAN)
    annotate(directory)
    send_command(directory, "validate")
    train(directory, waits=waits)
    other = create(OTHER)
    end_at_once(other, waits=waits)
    remove(other)


def annotate(directory: Path) -> None:
    """Give a run a name and tags."""
    rename_run(directory, "renamed")
    set_tags(directory, ["tag"])


def end_at_once(directory: Path, *, waits: bool = False) -> None:
    """End a run before its first step."""
    with closing(RunWriter(directory, waits=waits)) as run, _limited(run.disk):
        run.begin()
        run.end(RunEnded(time=99.0, outcome=Outcome.STOPPED, steps=0, epochs=0, seconds=1.0))


def train(directory: Path, *, waits: bool = False) -> None:
    """Write what an engine does that continues a run; each loss follows from the one before, as weights do."""
    folder = directory / CHECKPOINTS
    step = next((each for each in reversed(checkpoint_steps(directory)) if not find_damage(folder, each)), 0)
    loss = 1.0
    if step:
        (loss,) = struct.unpack("<d", Path(f"{checkpoint_path(folder, step)}.{_SHARD}").read_bytes())
    with closing(RunWriter(directory, waits=waits)) as run, _limited(run.disk):
        run.begin(started(step, run=directory.name))
        run.wait_for_disk(partial(delete_after, folder, step))
        while step < STEPS:
            losses = []
            for _ in range(CHUNK):
                loss = next_loss(loss)
                losses.append(loss)
            run.write_chunk(step, step, step + CHUNK, {"loss": losses})
            step += CHUNK
            with suppress(AccelError):  # they are held in memory
                run.write_samples((Sample(float(step), "cpu:0", {"utilization": Reading(float(step), "%")}),))
            if step % EPOCH == 0:
                ended = {"epoch": step // EPOCH, "step": step, "seconds": 1.0}
                run.write_event(EpochEnded(time=float(step), metrics={"loss": loss}, **ended))
                run.wait_for_disk(partial(save, folder, step, loss))
                run.wait_for_disk(partial(prune, folder, KEEP, None))
                run.write_event(CheckpointSaved(time=float(step), path="", best=False, **ended))
                with suppress(AccelError):  # what a script logs does not wait
                    run.write_media(step, float(step), "words", LoggedText(f"after {step}"))
        run.wait_for_disk(partial(save_model, directory, loss))
        run.end(RunEnded(time=99.0, outcome=Outcome.FINISHED, steps=step, epochs=3, seconds=1.0))


@contextmanager
def _limited(disk: disk_problem.DiskWait) -> Iterator[None]:
    """Limit how long a write may wait for a disk that works again."""
    timer = threading.Timer(5.0, disk.stop_waiting, [lambda problem: AssertionError(f"waited too long: {problem}")])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def next_loss(loss: float) -> float:
    """The loss of the next step."""
    return math.sin(loss) + 0.25


def save(folder: Path, step: int, loss: float) -> None:
    """Write a checkpoint as TensorFlow does: into a separate directory first."""
    folder.mkdir(exist_ok=True)
    with writing_checkpoint(folder, step) as path:
        unfinished = Path(f"{path}_temp")
        unfinished.mkdir(exist_ok=True)
        (unfinished / "part").write_bytes(struct.pack("<d", loss))
        (unfinished / "part").rename(f"{path}.{_SHARD}")
        unfinished.rmdir()
        Path(f"{path}.index").write_bytes(b"index")


def save_model(directory: Path, loss: float) -> None:
    """Write the trained model."""
    with replacing(directory / MODEL, directory / "partial.keras") as path:
        path.write_bytes(struct.pack("<d", loss))


def recover() -> Path:
    """Do what was not done, as a user would after reading what failed."""
    ours = [run for run in list_runs() if run.info and run.info.plan and run.info.plan.name == PLAN.name]
    directory = ours[0].directory if ours else create(PLAN)
    annotate(directory)
    with closing(RunReader(directory)) as reader:
        info = reader.info()
    if info.status is not Status.FINISHED:
        if info.status is not Status.STARTING:
            assert info.plan is not None
            reopen(directory, info.plan)
        train(directory)
    prune(directory / CHECKPOINTS, KEEP, None)  # one that could not be deleted is deleted after the next one
    for run in list_runs():
        if run.directory != directory:
            end_at_once(run.directory)
            remove(run.directory)
    return directory


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left of a run, but for times."""

    losses: tuple[float, ...]
    status: Status
    name: str
    tags: tuple[str, ...]
    checkpoints: tuple[tuple[int, str], ...]
    model: bytes
    files: frozenset[str]
    epochs: tuple[int, ...]

    @classmethod
    def of(cls, directory: Path) -> "Remains":
        """Read a run."""
        (listed,) = list_runs()
        assert listed.directory == directory, listed
        assert not listed.problem, listed.problem
        with closing(RunReader(directory)) as reader:
            info, update = reader.info(), reader.poll()
        by_step: dict[int, float] = {}
        for chunk in update.chunks:
            by_step |= dict(enumerate(chunk.series["loss"].tolist(), chunk.first_step))
        epochs = {event.step for event in update.events if isinstance(event, EpochEnded)}
        return cls(
            tuple(loss for _, loss in sorted(by_step.items())),
            info.status,
            info.name,
            info.annotations.tags,
            tuple((step, find_damage(directory / CHECKPOINTS, step)) for step in checkpoint_steps(directory)),
            (directory / MODEL).read_bytes(),
            frozenset(str(path.relative_to(directory)) for path in directory.rglob("*")),
            tuple(sorted(epochs)),
        )


def _expected() -> Remains:
    losses, checkpoints = [1.0], (STEPS - EPOCH, STEPS)
    for _ in range(STEPS):
        losses.append(next_loss(losses[-1]))
    names = [f"{CHECKPOINTS}/step-{step}.{suffix}" for step in checkpoints for suffix in ("index", "json", _SHARD)]
    return Remains(
        losses=tuple(np.asarray(losses[1:], np.float32).tolist()),
        status=Status.FINISHED,
        name="renamed",
        tags=("tag",),
        checkpoints=tuple((step, "") for step in checkpoints),
        model=struct.pack("<d", losses[-1]),
        files=frozenset([CHECKPOINTS, *names, "run.db", LOCK, MODEL]),
        epochs=tuple(range(EPOCH, STEPS + 1, EPOCH)),
    )


EXPECTED = _expected()
