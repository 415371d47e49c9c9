"""Keeps the last opened model in a process that answers several requests; other processes keep none."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from accel_engine.run.directory.run_paths import CHECKPOINTS, trained_model
from accel_engine.run.store.database import DATABASE

ModelT = TypeVar("ModelT")

_keeps = False
_last: tuple[Any, Any] | None = None  # what it was made of, and the model


def begin_request() -> None:
    """Let Keras name layers as in a new process, and keep the model that this request opens for the next one."""
    import keras

    global _keeps
    _keeps = True
    keras.utils.clear_session(free_memory=False)  # a kept model stays as it is


def opened_once(run: Path, step: int, make: Callable[[], ModelT], is_of_run: Callable[[ModelT], bool]) -> ModelT:
    """The model of a run: the kept one, if nothing that it was made of has changed since.

    Args:
        run: The run's directory.
        step: The step of its checkpoint.
        make: Opens it; the model that was kept before has then been freed.
        is_of_run: Whether it was made of the run's files alone. It is not kept if it was made of data, too.
    """
    global _last
    if not _keeps:
        return make()
    state = run.resolve(), step, _state_of_files(run)
    if _last is None or _last[0] != state:
        forget_kept_model()
        made = make()
        if not is_of_run(made):
            return made
        _last = state, made
    return cast(ModelT, _last[1])


def forget_kept_model() -> None:
    """Free the kept model, before another one is opened."""
    global _last
    if _last is not None:
        _last = None
        gc.collect()


def _state_of_files(run: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, time of change and size of the files of plan, reports, model and weights."""
    files = [run / DATABASE, run / f"{DATABASE}-wal", *sorted((run / CHECKPOINTS).iterdir())]
    if saved := trained_model(run):
        files.append(saved)
    found = [(file, file.stat()) for file in files if file.exists()]
    return tuple((file.name, stat.st_mtime_ns, stat.st_size) for file, stat in found if stat.st_size)
