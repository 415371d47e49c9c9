"""Reads W&B's offline runs, without the package ``wandb``, which has no reader of them.

A ``.wandb`` file is a log of records in blocks of 32 KiB, in the format of LevelDB, after a header of 7 bytes; each
record is a Protocol Buffers message.

Sources: ``wandb_internal.proto`` of the package; LevelDB's ``log_format.md``.
"""

import json
import math
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from accel_engine.errors import DataError
from accel_engine.imported_runs.source_run import RunSource, SourceRun, ValueCollector, collected
from accel_engine.protobuf import Message
from accel_engine.words import numbers

FORMAT = "W&B"

SUFFIX = ".wandb"

_FILE_HEADER = b":W&B\xe1\xbe\x00"
_BLOCK = 1 << 15
_HEAD = struct.Struct("<IHB")  # of a fragment of a record: checksum, length, kind
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4  # kinds of fragments

_HISTORY, _SUMMARY, _CONFIG, _STATS, _RUN, _EXIT = 2, 3, 5, 7, 17, 18  # fields of Record
_ITEM, _STEP, _STEP_NUMBER = 1, 2, 1  # of HistoryRecord and its HistoryStep
_UPDATE = 1  # of ConfigRecord and SummaryRecord
_KEY, _NESTED_KEY, _VALUE_JSON = 1, 2, 16  # of all items
_RUN_ID, _RUN_CONFIG, _NAME, _NOTES, _TAGS, _HOST, _START_TIME = 1, 4, 8, 9, 10, 13, 17  # of RunRecord
_SECONDS, _NANOSECONDS = 1, 2  # of Timestamp
_EXIT_CODE = 1  # of RunExitRecord


def find(root: Path) -> list[RunSource]:
    """The offline runs in a directory, or of one file, by their path."""
    files = [root] if root.is_file() else sorted(root.rglob(f"*{SUFFIX}"))
    return [RunSource(file if file == root else file.parent, FORMAT, (file,), partial(_read, file)) for file in files]


def _read(file: Path) -> SourceRun:
    """Read a run.

    Raises:
        DataError: The file is of another format.
        OSError: The file cannot be read.
    """
    return _Reader(file).run


class _Reader:
    """Reads the records of a file to a run."""

    def __init__(self, file: Path) -> None:
        self.run = SourceRun(name=file.stem.removeprefix("run-"))
        self._metrics: defaultdict[str, ValueCollector] = defaultdict(ValueCollector)
        self._summary: dict[str, Any] = {}
        self._config: dict[str, Any] = {}
        self._samples, self._malformed = 0, 0
        self._exit_status: int | None = None
        self._skipped: Counter[str] = Counter()
        fragments = _Records(file)
        for record in fragments:
            try:
                self._add(Message(record))
            except (ValueError, TypeError, OverflowError, RecursionError):  # also of values in JSON
                self._malformed += 1
        self._finish(fragments.problem)

    def _add(self, record: Message) -> None:
        if record.data(_HISTORY):
            self._add_history(record.message(_HISTORY))
        elif record.data(_SUMMARY):
            self._summary = _merged(self._summary, _values(record.message(_SUMMARY).messages(_UPDATE)))
        elif record.data(_CONFIG):
            self._config = _merged(self._config, _values(record.message(_CONFIG).messages(_UPDATE)))
        elif record.data(_RUN):
            self._add_run(record.message(_RUN))
        self._samples += bool(record.data(_STATS))
        if record.data(_EXIT):
            self._exit_status = record.message(_EXIT).integer(_EXIT_CODE) or 0

    def _add_history(self, history: Message) -> None:
        values = _values(history.messages(_ITEM))
        step, time = values.pop("_step", None), values.pop("_timestamp", math.nan)
        values.pop("_runtime", None)
        step = (history.message(_STEP).integer(_STEP_NUMBER) or 0) if step is None else int(step)
        for name, value in _flat(values):
            if isinstance(value, int | float):
                self._metrics[name].add(step, float(time), float(value))
            else:
                self._skipped[name] += 1

    def _add_run(self, record: Message) -> None:
        run = self.run
        run.name = record.text(_NAME) or run.name
        run.note, run.host = record.text(_NOTES), record.text(_HOST)
        run.tags = tuple(tag.decode(errors="replace") for tag in record.data(_TAGS))
        began = record.message(_START_TIME)
        run.began = float(began.integer(_SECONDS) or math.nan) + (began.integer(_NANOSECONDS) or 0) / 1e9
        self._config = _merged(self._config, _values(record.message(_RUN_CONFIG).messages(_UPDATE)))

    def _finish(self, problem: str) -> None:
        run = self.run
        run.add(collected(self._metrics, run.notes))
        run.config = {name: value for name, value in _flat(self._config) if not name.startswith("_wandb")}
        run.results = {
            name: float(value)
            for name, value in _flat(self._summary)
            if isinstance(value, int | float) and name not in self._metrics and not name.startswith("_")
        }
        if self._skipped:
            run.notes.append(f"only numbers are imported; left out: {numbers.listed([*self._skipped])}")
        if self._samples:
            run.notes.append(f"system metrics are left out: {self._samples:,} samples")
        if self._malformed:
            run.notes.append(f"{self._malformed:,} damaged records are left out")
        if problem or self._exit_status is None:
            run.notes.append(problem or "it has no end: its script was interrupted, or still runs")
        elif self._exit_status:
            run.notes.append(f"its script failed: exit status {self._exit_status}")


def _merged(before: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping after an update of some of its values, also of nested ones."""
    nested = {
        key: _merged(before[key], value)
        for key, value in update.items()
        if isinstance(value, dict) and isinstance(before.get(key), dict)
    }
    return {**before, **update, **nested}


def _values(items: list[Message]) -> dict[str, Any]:
    """The values of items by key, nested as their keys are.

    Raises:
        ValueError: A value is not JSON.
    """
    found: dict[str, Any] = {}
    for item in items:
        text, keys = item.text(_VALUE_JSON), [key.decode(errors="replace") for key in item.data(_NESTED_KEY)]
        *above, last = keys or [item.text(_KEY)]
        place = found
        for key in above:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                raise ValueError(f"{key} is a value and has values")  # noqa: TRY004 (the file is damaged)
        if text:
            place[last] = json.loads(text)
    return found


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Values by name, nested ones by ``outer.inner``; a mapping with a ``_type``, such as an image, is one value."""
    for key, value in values.items():
        if isinstance(value, dict) and "_type" not in value and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


class _Records:
    """The records of a file, in order.

    Args:
        file: The file.

    Attributes:
        problem: After reading: why the end of the file was not read; empty if all was.

    Raises:
        DataError: The file is of another format.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.problem = ""

    def __iter__(self) -> Iterator[bytes]:
        parts: list[bytes] = []
        for kind, data in self._fragments():
            if kind in (_FULL, _FIRST):
                parts = []
            parts.append(data)
            if kind in (_FULL, _LAST):
                yield b"".join(parts)

    def _fragments(self) -> Iterator[tuple[int, bytes]]:
        with self._file.open("rb") as stream:
            header = stream.read(len(_FILE_HEADER))
            if header != _FILE_HEADER:
                raise DataError(f"{self._file} is not a W&B run: it does not begin with {_FILE_HEADER[:4].decode()}")
            at = len(_FILE_HEADER)
            while True:
                if (left := _BLOCK - at % _BLOCK) < _HEAD.size:
                    at += len(stream.read(left))
                head = stream.read(_HEAD.size)
                if not head:
                    return
                check, length, kind = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 1, 0)
                data = stream.read(length)
                if len(data) < length:
                    self.problem = "its last record is incomplete: its script was interrupted, or still runs"
                    return
                if not _FULL <= kind <= _LAST or zlib.crc32(bytes([kind]) + data) != check:
                    self.problem = f"the record at byte {at:,} is damaged: what follows it is left out"
                    return
                at += _HEAD.size + length
                yield kind, data
