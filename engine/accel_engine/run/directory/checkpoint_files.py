"""The files of a run's checkpoints, and the checksums that tell which of them are whole; without TensorFlow.

TensorFlow writes ``step-N.index`` and ``step-N.data-*``. Then ``step-N.json`` is written, with the size and CRC-32 of
each. A checkpoint whose engine was killed just before does not have it: only reading it with TensorFlow tells whether
it is whole.
"""

import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.errors import RunError
from accel_engine.files import replacing
from accel_engine.json_values import Count, decode, encode

_BLOCK = 1 << 20

_NAME = re.compile(r"step-(?P<step>\d+)(?P<suffix>_temp|\.index|\.json(_partial)?|\.data-.*)")


@dataclass(frozen=True, slots=True)
class Checksum:
    """Size and checksum of a file."""

    size: Count
    """Bytes."""
    crc32: Count
    """CRC-32, the fastest of the standard library: 0.03 s for 100 MB."""


@dataclass(frozen=True, slots=True)
class _Checksums:
    """The contents of the file beside a checkpoint."""

    finite: bool
    """Whether all values are finite."""
    files: dict[str, Checksum]
    """The checksums by file name."""


def checkpoint_path(folder: Path, step: int) -> Path:
    """The path of a checkpoint, to which TensorFlow adds suffixes.

    Args:
        folder: The run's directory of checkpoints.
        step: The checkpoint's step.
    """
    return folder / f"step-{step}"


HOST_STEPS = "host.json"
"""File with the steps of the checkpoints that only another machine has, whose run the directory mirrors."""


def steps_in(folder: Path) -> list[int]:
    """The steps of the checkpoints in a directory, whole or not, in increasing order.

    Of a run that is mirrored from another machine, the steps of the checkpoints there.
    """
    steps = (path.stem.removeprefix("step-") for path in folder.glob("step-*.index"))
    return sorted({*(int(step) for step in steps if step.isdigit()), *_host_steps(folder)})


def _host_steps(folder: Path) -> tuple[int, ...]:
    try:
        return decode((folder / HOST_STEPS).read_text("utf-8"), tuple[Count, ...])
    except (OSError, ValueError):
        return ()


def write_host_steps(folder: Path, steps: Sequence[int]) -> None:
    """Note the steps of the checkpoints on the machine that a run is mirrored from.

    Raises:
        OSError: The file cannot be written.
    """
    if list(steps) != steps_in(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
        with replacing(folder / HOST_STEPS) as unfinished:
            unfinished.write_text(encode(tuple(steps)), encoding="utf-8")


@contextmanager
def writing_checkpoint(folder: Path, step: int) -> Iterator[Path]:
    """Yield the path of a checkpoint whose values are all finite, for TensorFlow to write, and add its checksums.

    If that fails, nothing is left that would look like a checkpoint or take space on a full disk.

    Raises:
        OSError: The checkpoint cannot be written.
    """
    is_new = step not in steps_in(folder)
    _checksum_file(folder, step).unlink(missing_ok=True)
    try:
        yield checkpoint_path(folder, step)
        write_checksums(folder, step)
    except Exception:
        shutil.rmtree(folder / f"step-{step}_temp", ignore_errors=True)
        with suppress(OSError):
            delete(folder, [step] if is_new else [])
        raise


def write_checksums(folder: Path, step: int) -> None:
    """Write the checksums of a checkpoint whose values are all finite, once its files have reached the disk.

    Raises:
        OSError: Its files cannot be read, or the checksums cannot be written.
    """
    files = {path.name: _checksum(path, flush=True) for path in _data_files(folder, step)}
    final = _checksum_file(folder, step)
    # Named as a leftover of the same checkpoint, in case this process is killed.
    with replacing(final, Path(f"{final}_partial")) as unfinished, unfinished.open("w", encoding="utf-8") as file:
        file.write(encode(_Checksums(finite=True, files=files)))
        file.flush()
        os.fsync(file.fileno())


def has_checksums(folder: Path, step: int) -> bool:
    """Whether a checkpoint has a readable file of checksums."""
    return _read_checksums(folder, step) is not None


def has_garbage_checksums(folder: Path, step: int) -> bool:
    """Whether a checkpoint has a file of checksums that cannot be read."""
    return _checksum_file(folder, step).exists() and not has_checksums(folder, step)


def find_damage(folder: Path, step: int, *, quick: bool = False) -> str:
    """Say how a checkpoint differs from its checksums; empty if it does not, or has none.

    Args:
        folder: The run's directory of checkpoints.
        step: The checkpoint's step.
        quick: Whether to compare only the sizes of its files.
    """
    stored = _read_checksums(folder, step)
    if stored is None:
        return ""
    if not stored.finite:
        return "it has values that are not finite"
    for name, expected in stored.files.items():
        path = folder / name
        try:
            size = path.stat().st_size
            if size != expected.size:
                return f"{name} has {size:,} bytes instead of {expected.size:,}"
            if not quick and _checksum(path) != expected:
                return f"the checksum of {name} does not match"
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
    return ""


def first_whole(steps: Iterable[int], find_problem: Callable[[int], str]) -> tuple[int | None, list[str]]:
    """Find the first of some checkpoints that is whole.

    Args:
        steps: Their steps, the preferred one first.
        find_problem: Says what is wrong with the checkpoint of a step; empty if it is whole.

    Returns:
        Its step, ``None`` if all are damaged; and what is wrong with the ones before it.
    """
    problems: list[str] = []
    for step in steps:
        if not (problem := find_problem(step)):
            return step, problems
        problems.append(problem)
    return None, problems


def by_preference(steps: Iterable[int], choose: Callable[[Sequence[int]], int | None]) -> Iterator[int]:
    """Yield steps, the preferred one first.

    Args:
        steps: The steps.
        choose: Chooses one of those that are left; ``None`` for none of them.
    """
    left = list(steps)
    while left and (step := choose(left)) is not None:
        left.remove(step)
        yield step


def damaged_message(step: int, problem: str) -> str:
    """The message that a checkpoint is damaged."""
    return f"the checkpoint of step {step:,} is damaged ({problem})"


def all_damaged_message(folder: Path, problems: Iterable[str]) -> str:
    """The message that a run cannot continue because all its checkpoints are damaged, and what can be done.

    Args:
        folder: The run's directory of checkpoints.
        problems: What is wrong with each.
    """
    return (
        f"run {folder.parent.name} has no whole checkpoint: {'; '.join(problems)}. Nothing was deleted: put back the "
        f"files of {folder.name}/ from a copy, or start a new run"
    )


def check_any_whole(folder: Path) -> None:
    """Check that there is a checkpoint to continue from, if there is any, as far as the sizes of files tell.

    Raises:
        RunError: All checkpoints are damaged.
    """
    problems = {step: find_damage(folder, step, quick=True) for step in reversed(steps_in(folder))}
    if problems and all(problems.values()):
        raise RunError(all_damaged_message(folder, (damaged_message(*each) for each in problems.items())))


def delete(folder: Path, steps: Iterable[int]) -> None:
    """Delete the checkpoints of some steps, each first from the list of checkpoints.

    Raises:
        OSError: A file cannot be deleted.
    """
    for step in steps:
        checkpoint_path(folder, step).with_suffix(".index").unlink(missing_ok=True)
        for path in folder.glob(f"step-{step}.*"):
            path.unlink(missing_ok=True)


def prune(folder: Path, keep: int, best: int | None) -> None:
    """Delete all checkpoints but the newest ones and the one of the best step, and what an earlier try left.

    Raises:
        OSError: A file cannot be deleted.
    """
    delete(folder, {*steps_in(folder)[:-keep]} - {best})
    delete_leftovers(folder)


def delete_after(folder: Path, step: int) -> None:
    """Delete the checkpoints after a step, from which training continues, and what a killed engine left.

    Raises:
        OSError: A file cannot be deleted.
    """
    delete(folder, [each for each in steps_in(folder) if each > step])
    delete_leftovers(folder)


def delete_leftovers(folder: Path) -> None:
    """Delete what an engine left when it was killed, or failed, while it saved or deleted a checkpoint.

    Raises:
        OSError: A file cannot be deleted.
    """
    complete = {*steps_in(folder)}
    for path in folder.glob("step-*"):
        parts = _NAME.fullmatch(path.name)
        if parts and parts["suffix"] == "_temp":  # TensorFlow's, until it has written all data
            shutil.rmtree(path)
        elif parts and int(parts["step"]) not in complete:
            path.unlink(missing_ok=True)


def _data_files(folder: Path, step: int) -> list[Path]:
    return [checkpoint_path(folder, step).with_suffix(".index"), *sorted(folder.glob(f"step-{step}.data-*"))]


def _checksum_file(folder: Path, step: int) -> Path:
    return checkpoint_path(folder, step).with_suffix(".json")


def _checksum(path: Path, *, flush: bool = False) -> Checksum:
    size = crc32 = 0
    with path.open("rb", buffering=0) as file:
        if flush:
            os.fsync(file.fileno())
        while block := file.read(_BLOCK):
            size += len(block)
            crc32 = zlib.crc32(block, crc32)
    return Checksum(size, crc32)


def _read_checksums(folder: Path, step: int) -> _Checksums | None:
    """``None`` without a readable file of them."""
    try:
        stored = decode(_checksum_file(folder, step).read_text("utf-8"), _Checksums)
    except (OSError, ValueError):
        return None
    own = all(name.startswith(f"step-{step}.") and "/" not in name for name in stored.files)
    return stored if own and len(stored.files) > 1 else None
