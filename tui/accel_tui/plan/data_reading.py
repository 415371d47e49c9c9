"""Reads the data of a form for its preview, in a process that ends at once when other data is chosen."""

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from accel_engine.data import DatasetEntry, source_of
from accel_engine.data_profile.described_data import DescribedData
from accel_engine.errors import AccelError
from accel_engine.plan import Plan
from accel_engine.process.engine_call import EngineCall
from accel_engine.requests.preview_data import PreviewRequest
from accel_engine.words import numbers

MAX_BYTES = 64 << 20
"""Bytes of files that are read for a preview; folders of images and sounds are read by example."""

MAX_FILES = 20_000
"""Files of a folder that are read."""

SECONDS = 30.0
"""After these, a preview is given up."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The preview of data, or why it was not read."""

    known: DescribedData | None = None
    """The description; ``None`` if the data was not read."""
    reason: str = ""
    """Why it was not read, for the user."""


class PreviewReading:
    """A preview that can be given up from any thread."""

    def __init__(self) -> None:
        self._call: EngineCall[DescribedData] | None = None
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._took_long = False

    def cancel(self) -> None:
        """End the process."""
        with self._lock:
            self._is_cancelled = True
            if self._call:
                self._call.cancel()

    def read(self, plan: Plan, entry: DatasetEntry) -> Preview:
        """Read data and describe it; blocks, so call it from a thread.

        Args:
            plan: Names the data, and how it is read and split.
            entry: What is known of it.
        """
        if reason := not_read(entry):
            return Preview(reason=reason)
        timer = threading.Timer(SECONDS, self._give_up)
        timer.daemon = True
        try:
            with EngineCall(PreviewRequest(plan)) as call:
                with self._lock:
                    self._call = call
                    if self._is_cancelled:
                        return Preview()
                timer.start()
                return Preview(call.result())
        except AccelError as error:
            return Preview(reason=f"only names and first rows: {self._why(error)}")
        finally:
            timer.cancel()
            with self._lock:
                self._call = None

    def _give_up(self) -> None:
        self._took_long = True
        self.cancel()

    def _why(self, error: AccelError) -> str:
        return f"reading takes longer than {SECONDS:.0f} s" if self._took_long else str(error)


def not_read(entry: DatasetEntry) -> str:
    """Why data is not read for a preview; empty if it is."""
    if entry.function:
        return "your function is not run before the training; accel-tui data runs it"
    if entry.url or source_of(entry).loads_with_tensorflow:
        return "it is read when the training begins" if entry.path or entry.url else "downloaded when it is first used"
    size, files = _extent(entry.path) if entry.path else (0, 0)
    if files > MAX_FILES:
        return f"only names: {files:,} files or more are read when the training begins"
    if size > MAX_BYTES and not (entry.path and entry.path.is_dir() and entry.kind in ("images", "audio")):
        return f"only names and first rows: {numbers.size(size)} are read when the training begins"
    return ""


def _extent(path: Path) -> tuple[int, int]:
    """Bytes and number of the files of a path, counted until there are more than :data:`MAX_FILES`."""
    size = count = 0
    for folder, _, names in os.walk(path) if path.is_dir() else [(path.parent, (), [path.name])]:
        for name in names:
            with suppress(OSError):  # gone by now
                size += (Path(folder) / name).stat().st_size
        count += len(names)
        if count > MAX_FILES:
            break
    return size, count
