"""Writes a run, also while it is live, to a directory of event files, one per subdirectory."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import numpy as np

from accel_engine.devices.device_types import Sample
from accel_engine.errors import RunError
from accel_engine.events import RunStarted, Validated
from accel_engine.run.directory.disk_problem import disk_problem
from accel_engine.run.media import MediaKind
from accel_engine.run.reading.reader import RunReader, drop_discarded
from accel_engine.run.store.sample_packing import SampleUnpacker
from accel_engine.run.store.series_names import LEARNING_RATE
from accel_engine.run.store.steps import StepBatch
from accel_engine.tensorboard.event_file import EventFile, remove_event_files

TRAIN, VALIDATION, DEVICES = PARTS = ("train", "validation", "devices")
"""The subdirectories: steps; validation, with the same tags; device metrics, at the steps taken by then."""

THROUGHPUT_TAG = "steps_per_second"

CUSTOM_PREFIX = "step/"
"""Prefix of a series of a custom ``train_step`` that has the name of :data:`THROUGHPUT_TAG`."""


class RunLog:
    """Writes a run, and then what is new in it.

    Args:
        source: The run.
        directory: The output directory; event files in its subdirectories are replaced.

    Raises:
        OSError: An event file cannot be written. All methods raise it, too.
    """

    def __init__(self, source: RunReader, directory: Path) -> None:
        self._source = source
        self._directory = directory
        self._files: dict[str, EventFile] = {}
        for part in PARTS:
            remove_event_files(directory / part)
        self._unpacker = SampleUnpacker()
        self._event, self._chunk, self._sample, self._media, self._step = 0, 0, 0, 0, 0
        self._kinds: dict[str, MediaKind] = {}  # by tag

    def extend(self) -> None:
        """Write what is new.

        Raises:
            RunError: The run cannot be read.
        """
        self._add_events()
        chunk, taken = self._chunk, self._step
        new = self._source.new_steps(chunk)
        if new is not None:
            if new.first < self._step:
                self._file(TRAIN).restart(new.first)
            by = self._source.info().x_series
            for batch in self._source.steps(new.first, new.stop):
                self._add_steps(batch.placed_by(by) if by else batch)
            self._chunk, self._step = new.chunk, new.stop
        self._add_samples(chunk, taken)
        self._add_media()
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def _file(self, part: str) -> EventFile:
        """The file of a part, created on first use."""
        if part not in self._files:
            self._files[part] = EventFile(self._directory / part)
        return self._files[part]

    def _add_steps(self, batch: StepBatch) -> None:
        file = self._file(TRAIN)
        for name, values in batch.series.items():
            tag = CUSTOM_PREFIX + name if name == THROUGHPUT_TAG else name
            known = np.isfinite(values) if name == LEARNING_RATE else slice(None)
            file.add(tag, batch.times[known], batch.steps[known], values[known].astype(np.float32))
        rates = batch.steps_per_second
        changed = np.isfinite(rates) & np.concatenate(([True], rates[1:] != rates[:-1]))
        file.add(THROUGHPUT_TAG, batch.times[changed], batch.steps[changed], rates[changed].astype(np.float32))

    def _add_events(self) -> None:
        events = list(self._source.events(self._event, RunStarted, Validated))
        self._event = events[-1][0] if events else self._event
        for event in drop_discarded(event for _, event in events):
            if isinstance(event, Validated):
                for name, value in event.metrics.items():
                    values = np.array([value], np.float32)
                    self._file(VALIDATION).add(name, np.array([event.time]), np.array([event.step]), values)

    def _add_media(self) -> None:
        """Write images, texts and histograms; a tag that has another kind of data already gets its kind as a suffix."""
        series = self._source.series()
        for logged in self._source.media_items(self._media):
            self._media, kind = logged.id, logged.item.kind
            is_own = logged.name not in series and self._kinds.setdefault(logged.name, kind) == kind
            tag = logged.name if is_own else f"{logged.name}/{kind}"
            self._file(TRAIN).add_media(tag, logged.time, logged.step, logged.item)

    def _add_samples(self, chunk: int, taken: int) -> None:
        """Write device metrics.

        Args:
            chunk: Id of the last chunk written before.
            taken: Steps taken by its end.
        """
        ends = self._source.chunk_ends(chunk)
        ended, steps = np.array([end for end, _ in ends]), np.array([taken, *(steps for _, steps in ends)])
        for number, samples in self._source.sample_batches(self._unpacker, self._sample):
            self._sample = number
            for tag, points in _by_tag(samples).items():
                times, values = np.array(points).T
                at = steps[np.searchsorted(ended, times, "right")]
                self._file(DEVICES).add(tag, times, at, values.astype(np.float32))


def _by_tag(samples: Iterable[Sample]) -> dict[str, list[tuple[float, float]]]:
    """Times and values by device and reading, without missing values and single cores."""
    points = defaultdict(list)
    for sample in samples:
        for name, reading in sample.readings.items():
            if reading.value is not None and not name.startswith("core_"):
                points[f"{sample.device}/{name}"].append((sample.time, reading.value))
    return points


DIRECTORY = "tensorboard"
"""Directory of the event files in the run's directory."""

INTERVAL = 2.0
"""Seconds between writes; TensorBoard reads every 5 to 30 seconds."""


class LiveLog:
    """Writes a run's new steps to event files in a thread.

    The files are rewritten from the run's first step whenever an engine starts or continues the run: the files of an
    engine that exited unexpectedly may lack steps, or have discarded ones; and after the disk was full.

    Args:
        directory: The run's directory.
        on_problem: Called in the thread with a message when the files cannot be written; the thread then ends.
    """

    def __init__(self, directory: Path, on_problem: Callable[[str], None]) -> None:
        self._directory = directory
        self._on_problem = on_problem
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tensorboard", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write the remaining steps, and end the thread."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            is_last = self._stopping.is_set()
            try:
                return self._follow()
            except (OSError, RunError) as error:
                if is_last or not disk_problem(error, self._directory):
                    return self._on_problem(f"cannot write TensorBoard events any more: {error}")
            self._stopping.wait(INTERVAL)  # then the files are written again, if the disk has room

    def _follow(self) -> None:
        with (
            closing(RunReader(self._directory)) as source,
            closing(RunLog(source, self._directory / DIRECTORY)) as log,
        ):
            while not self._stopping.wait(INTERVAL):
                log.extend()
            log.extend()
