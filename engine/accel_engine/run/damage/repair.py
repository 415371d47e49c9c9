"""Saves what is whole of a damaged run to a new run."""

import os
import shlex
import shutil
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.run.damage.repaired_rows import SavedCount, copy_whole_rows, is_whole
from accel_engine.run.damage.salvage import copy_readable
from accel_engine.run.directory import lock
from accel_engine.run.directory.checkpoint_files import find_damage, steps_in
from accel_engine.run.directory.run_paths import (
    CHECKPOINTS,
    LOG,
    MODEL,
    WORKERS,
    check_is_here,
    latest_checkpoint,
    make_private,
)
from accel_engine.run.engine.status import read_info
from accel_engine.run.runs.creation import new_run
from accel_engine.run.runs.worker_runs import path_of, worker_runs_of
from accel_engine.run.store.database import DATABASE, RunDatabase, create_file, reading
from accel_engine.versioned_database import WRITING, database_errors


@dataclass(frozen=True, slots=True)
class Repair:
    """A repaired run."""

    directory: Path
    """The new run."""
    rows: Mapping[str, SavedCount]
    """The rows of each table, its other workers' included."""
    steps: int
    """Steps up to the last one that was saved."""
    checkpoints: SavedCount
    """Its checkpoints, its other workers' included."""
    workers: SavedCount
    """The runs of its other workers."""
    model: bool | None
    """Whether the trained model was saved; ``None`` if there is none."""

    @property
    def has_checkpoint(self) -> bool:
        """Whether the new run can be continued from a checkpoint."""
        return latest_checkpoint(self.directory) > 0


def repair_run(directory: Path) -> Repair | None:
    """Save what is whole of a run to a new run; the damaged one is not changed.

    TensorBoard's event files are not copied: an engine that continues a run writes them anew.

    Returns:
        The new run; ``None`` if nothing is damaged.

    Raises:
        RunError: The run is on a host, is being trained or has another version of the format, nothing of it can be
            saved, or the new one cannot be written.
    """
    check_is_here(directory, f"repair it there with accel-tui repair {shlex.quote(directory.name)}")
    _refuse_live(directory)
    if _is_whole(directory):
        return None
    with (
        database_errors(f"the repaired run of {directory.name}", WRITING),
        new_run(f"{directory.name.partition('-')[2]} repaired", ".repair-") as new,
    ):
        final = new.parents[1] / new.name
        rows, steps = _save(directory, new)
        checkpoints = _copy_checkpoints(directory, new)
        workers, more = _save_workers(directory, new, final, rows)
        _share_checkpoints(directory, new)
        done = Repair(final, rows, steps, checkpoints + more, workers, _copy_model(directory, new))
        if not (any(figures.saved for figures in rows.values()) or done.checkpoints.saved or done.model):
            raise RunError(f"nothing of run {directory.name} can be read, so that nothing can be saved")
    return done


def _refuse_live(directory: Path) -> None:
    is_live = lock.is_locked(directory)
    with suppress(RunError), reading(directory) as database:
        is_live = is_live or read_info(database).status.live
    if is_live:
        raise RunError(f"run {directory.name} is being trained: stop it before you repair it")


def _is_whole(directory: Path) -> bool:
    runs = _runs_within(directory)
    folders = [run / CHECKPOINTS for run in runs]
    return (
        all(_is_database_whole(run) for run in runs)
        and not any(find_damage(folder, step) for folder in folders for step in steps_in(folder))
        and _is_model_whole(directory) is not False
    )


def _runs_within(directory: Path) -> list[Path]:
    """A run, and those of its other workers that are within it."""
    return [directory, *(worker for worker in worker_runs_of(directory).values() if not worker.is_symlink())]


def _is_database_whole(directory: Path) -> bool:
    with suppress(RunError), reading(directory) as database:
        return is_whole(database)
    return False


def _save(directory: Path, new: Path) -> tuple[dict[str, SavedCount], int]:
    """Save the rows and the log of a run to an empty directory; returns its last step, too."""
    create_file(new / DATABASE)
    with RunDatabase(new) as database:
        rows = copy_whole_rows(directory, database, path_of(directory))
        steps = database.chunk_from_end()[1]
    with suppress(OSError):
        if (directory / LOG).is_file():
            shutil.copyfile(directory / LOG, new / LOG)
    return rows, steps


def _save_workers(
    directory: Path, new: Path, final: Path, rows: dict[str, SavedCount]
) -> tuple[SavedCount, SavedCount]:
    """Save the runs of other workers that are within a run, and link those that it links to; adds to ``rows``.

    Returns:
        How many of them, and how many of their checkpoints.
    """
    figures, checkpoints = SavedCount(), SavedCount()
    for worker in worker_runs_of(directory).values():
        place = new / WORKERS / worker.name
        make_private(place.parent)
        if worker.is_symlink():
            place.symlink_to(os.path.relpath(worker.resolve(), final / WORKERS), target_is_directory=True)
            figures += SavedCount(saved=1)
            continue
        make_private(place)
        try:
            found, _ = _save(worker, place)
        except RunError:  # it has no file
            found = {}
        if any(each.saved for each in found.values()):
            figures += SavedCount(saved=1)
            checkpoints += _copy_checkpoints(worker, place)
        else:
            shutil.rmtree(place)
            figures += SavedCount(lost=1)
        for table, each in found.items():
            rows[table] += each
    return figures, checkpoints


def _copy_checkpoints(directory: Path, new: Path) -> SavedCount:
    """Copy the checkpoints that are whole, as far as their checksums tell, and that can be read."""
    folder, figures = directory / CHECKPOINTS, SavedCount()
    for step in steps_in(folder):
        paths = sorted(folder.glob(f"step-{step}.*"))
        is_saved = not find_damage(folder, step) and _copy_all(paths, new / CHECKPOINTS)
        figures += SavedCount(saved=1) if is_saved else SavedCount(lost=1)
    return figures


def _share_checkpoints(directory: Path, new: Path) -> None:
    """Give a worker that has lost all its checkpoints those of another, which are equal: all continue, or none."""
    saved = {path: new / path.relative_to(directory) for path in _runs_within(directory)}
    whole = next((copy for copy in saved.values() if steps_in(copy / CHECKPOINTS)), None)
    for path, copy in saved.items():
        if whole and copy.is_dir() and steps_in(path / CHECKPOINTS) and not steps_in(copy / CHECKPOINTS):
            _copy_checkpoints(whole, copy)


def _copy_model(directory: Path, new: Path) -> bool | None:
    """Copy the trained model if it is whole."""
    return _is_model_whole(directory) and _copy_all([directory / MODEL], new)


def _copy_all(paths: Sequence[Path], folder: Path) -> bool:
    """Copy files to a directory; if one cannot be read, no copy is left.

    Raises:
        OSError: The copies cannot be written.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    if all(_copy_file(path, folder / path.name) for path in paths):
        return True
    for path in paths:
        (folder / path.name).unlink(missing_ok=True)
    return False


def _copy_file(path: Path, to: Path) -> bool:
    try:
        source = path.open("rb")
    except OSError:
        return False
    with source:
        return copy_readable(source, to)


def _is_model_whole(directory: Path) -> bool | None:
    """Whether all checksums of the trained model match; ``None`` if there is none."""
    model = directory / MODEL
    if not model.is_file():
        return None
    try:
        with zipfile.ZipFile(model) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError, NotImplementedError):
        return False
