"""Adds, deletes and reads the steps of a run that is being written."""

import math
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING

from accel_engine.errors import RunError
from accel_engine.run.store.database import RunDatabase
from accel_engine.run.store.schema import MAX_CHUNK, MAX_SERIES, MAX_STEP, SPANS

if TYPE_CHECKING:  # NumPy is slow to import, and creating a run does not need it
    import numpy as np
    import numpy.typing as npt

_MISSING = struct.pack("<f", math.nan)
"""The value of a step without one."""


class StepWriter:
    """Knows which steps and series a run has. Its methods raise :exc:`~accel_engine.errors.RunError`.

    Attributes:
        end: The step after the last one; after a write that failed, the caller sets it back.
    """

    def __init__(self) -> None:
        self._series: tuple[str, ...] = ()
        self.end = 0

    def load(self, database: RunDatabase) -> None:
        """Find out which steps and series a database has; the other methods take it, or one with the same steps."""
        self._series = database.series()
        self.end = database.chunk_from_end()[1]

    def add(
        self, database: RunDatabase, first_step: int, started: float, ended: float, columns: Mapping[str, bytes]
    ) -> list[str]:
        """Add a chunk; steps from its first one on are deleted.

        Args:
            database: The run's database.
            first_step: Steps taken in the run before it.
            started: Seconds since the Unix epoch.
            ended: Seconds since the Unix epoch.
            columns: Values of each step by series name, of :func:`pack_chunk`.

        Returns:
            The series that are left out, as the run has :data:`MAX_SERIES` others.
        """
        left_out = []
        for name in columns:
            if name in self._series:
                continue
            if len(self._series) >= MAX_SERIES:
                left_out.append(name)
                continue
            database.add_series(name)
            self._series = (*self._series, name)
        count = _count(columns)
        if left_out:  # of a chunk, one series at least is stored
            known = {name: values for name, values in columns.items() if name not in left_out}
            columns = known or {self._series[0]: count * _MISSING}
        last = first_step + count
        if first_step >= self.end and last // SPANS[0] == self.end // SPANS[0]:
            database.add_chunk(first_step, count, started, ended, columns)
        else:
            from accel_engine.run.store import downsampled_steps  # see above

            with database.transaction():
                self.delete(database, first_step)
                database.add_chunk(first_step, count, started, ended, columns)
                downsampled_steps.extend(database, last)
        self.end = last
        return left_out

    def delete(self, database: RunDatabase, step: int) -> None:
        """Delete the steps from ``step`` on."""
        if step < self.end:
            database.delete_steps(step, self._series)
            self.end = database.chunk_from_end()[1]

    def read(self, database: RunDatabase, first: int, last: int) -> "tuple[dict[str, npt.NDArray[np.float32]], float]":
        """Read the series of the chunks within the steps from ``first`` up to ``last``, and their total seconds."""
        import numpy as np  # see above

        rows = database.chunks_between(first, last, self._series)
        rows = [row for row in rows if first <= row.chunk.first_step and row.chunk.stop <= last]
        packed = {
            name: b"".join(row.series[index] or row.chunk.count * _MISSING for row in rows)
            for index, name in enumerate(self._series)
            if any(row.series[index] for row in rows)
        }
        series = {name: np.frombuffer(values, dtype="<f4") for name, values in packed.items()}
        return series, sum(row.chunk.ended - row.chunk.started for row in rows)


def pack_chunk(first_step: int, series: "Mapping[str, npt.ArrayLike]") -> dict[str, bytes]:
    """Pack the values of consecutive steps, by series name; all of one length.

    Raises:
        RunError: There are no values, or more steps than a run can have; see :mod:`accel_engine.run.store.schema`.
    """
    import numpy as np  # see above

    columns = {name: np.asarray(values, dtype="<f4").tobytes() for name, values in series.items()}
    count = _count(columns)
    if not (0 < count <= MAX_CHUNK and 0 <= first_step <= MAX_STEP - count):
        raise RunError(
            f"cannot write {count:,} steps from {first_step:,}: a chunk has 1 to {MAX_CHUNK:,} steps, and a run at "
            f"most {MAX_STEP:,}"
        )
    return columns


def _count(columns: Mapping[str, bytes]) -> int:
    return len(next(iter(columns.values()), b"")) // 4
