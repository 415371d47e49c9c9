"""A run as another tool recorded it, in the terms of this program."""

import re
from array import array
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.run.media import MediaItem, MediaKind
from accel_engine.words import numbers

Floats = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ImportedMetric:
    """The values of a metric, by rising step."""

    steps: Steps
    """int64 ``[n]``, not negative."""
    times: Floats
    """Seconds since the Unix epoch, float64 ``[n]``; NaN if unknown."""
    values: Floats
    """float64 ``[n]``."""

    def at(self, steps: Steps) -> "ImportedMetric":
        """The same values at other steps."""
        return ImportedMetric(steps, self.times, self.values)


class ValueCollector:
    """Collects the values of a metric in the order in which they were recorded, in 24 bytes each.

    Args:
        too_large: Values that were made infinite before they are added.
    """

    def __init__(self, *, too_large: int = 0) -> None:
        self._steps, self._times, self._values = array("q"), array("d"), array("d")
        self.replaced = 0
        """Values that later ones of the same step, or of a restart from an earlier step, replace."""
        self.negative = 0
        """Values at negative steps, which are left out."""
        self.too_large = too_large
        """Finite values beyond float32, which are made infinite: a run stores float32."""

    def add(self, step: int, time: float, value: float) -> None:
        """Add a value."""
        if not 0 <= step < 1 << 62:
            self.negative += 1
            return
        self._steps.append(step)
        self._times.append(time)
        self._values.append(value)

    def extend(self, steps: Steps, times: Floats, values: Floats) -> None:
        """Add values ``[n]``, at steps that are not negative."""
        for column, new in ((self._steps, steps), (self._times, times), (self._values, values)):
            column.frombytes(new.tobytes())

    def restart(self, step: int) -> None:
        """Discard the steps from ``step`` on."""
        before = self._arrays()
        kept = before.steps < step
        self.replaced += int((~kept).sum())
        self._steps, self._times = array("q", before.steps[kept].tobytes()), array("d", before.times[kept].tobytes())
        self._values = array("d", before.values[kept].tobytes())

    def points(self) -> ImportedMetric:
        """The values by rising step; where steps go back, the later values count."""
        found = self._arrays()
        if not len(found.steps):
            return found
        lowest_after = np.minimum.accumulate(found.steps[::-1])[::-1]
        kept = np.append(found.steps[:-1] < lowest_after[1:], True)
        self.replaced += int((~kept).sum())
        return ImportedMetric(found.steps[kept], found.times[kept], self._in_float32(found.values[kept]))

    def _in_float32(self, values: Floats) -> Floats:
        """Make values infinite where they are beyond float32."""
        with np.errstate(over="ignore"):
            large = np.isinf(values.astype(np.float32)) & np.isfinite(values)
        self.too_large += int(large.sum())
        values[large] = np.copysign(np.inf, values[large])
        return values

    def _arrays(self) -> ImportedMetric:
        return ImportedMetric(
            np.frombuffer(self._steps, np.int64).copy(),
            np.frombuffer(self._times, np.float64).copy(),
            np.frombuffer(self._values, np.float64).copy(),
        )


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch that ended."""

    number: int
    """Counted from 1."""
    step: int
    """Steps taken by then."""
    time: float
    """Seconds since the Unix epoch; NaN if unknown."""
    metrics: Mapping[str, float]
    """Its means by the name of the series."""


@dataclass(frozen=True, slots=True)
class SourceMedia:
    """The images, texts or histograms of one name. They are read one by one, as they may take much memory."""

    name: str
    """Their name."""
    kind: MediaKind
    """Their kind."""
    points: ImportedMetric
    """Where each is: its step, its time, and what ``read`` needs to find it."""
    read: Callable[[float], MediaItem]
    """Reads an item by the value of its point. Raises ``ValueError`` with a noun phrase for why it cannot."""


@dataclass(slots=True, kw_only=True)
class SourceRun:
    """A run as another tool recorded it."""

    name: str
    """Its name."""
    began: float = float("nan")
    """Seconds since the Unix epoch; NaN if unknown."""
    series: dict[str, ImportedMetric] = field(default_factory=dict)
    """The values of each step, counted from 0, by name."""
    validations: dict[str, ImportedMetric] = field(default_factory=dict)
    """The values of validations by name, at the steps taken by then."""
    epochs: list[Epoch] = field(default_factory=list)
    """The epochs that ended, in order."""
    media: list[SourceMedia] = field(default_factory=list)
    """Images, texts and histograms."""
    results: dict[str, float] = field(default_factory=dict)
    """Final results besides the last values."""
    config: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters."""
    note: str = ""
    """The user's note."""
    tags: tuple[str, ...] = ()
    """The user's tags."""
    host: str = ""
    """Host name of its machine; empty if unknown."""
    notes: list[str] = field(default_factory=list)
    """Notes on what the reader left out or assumed."""
    times_expected: bool = True
    """Whether its format has times, so that it is worth a note if there are none."""

    def add(self, metrics: Mapping[str, ImportedMetric], *, validated: bool = False) -> None:
        """Add metrics by the steps that they were measured after, counted from 0; names tell which are of validation.

        Args:
            metrics: By the names that the other tool gives them.
            validated: Whether all of them are of validation.
        """
        for name, points in metrics.items():
            is_validation, short = _split_name(name)
            found = self.validations if validated or is_validation else self.series
            at = points.steps + (found is self.validations)
            found[free_name(found, short, name)] = points.at(at)


@dataclass(frozen=True, slots=True)
class RunSource:
    """Files that hold one run."""

    path: Path
    """The folder or file that the user knows it by, absolute."""
    format: str
    """``TensorBoard``, ``W&B`` or ``CSV``."""
    files: tuple[Path, ...]
    """The files."""
    read: Callable[[], SourceRun]
    """Reads the run."""


def collected(collectors: Mapping[str, ValueCollector], notes: list[str]) -> dict[str, ImportedMetric]:
    """The points of collectors that have any, by name; adds notes on values that are left out or changed.

    Args:
        collectors: By name.
        notes: Gets the notes.
    """
    points = {name: collector.points() for name, collector in collectors.items()}
    for attribute, what, why in (
        ("replaced", "left out", "the run went back to the same step or an earlier one"),
        ("negative", "left out", "negative steps"),
        ("too_large", "read as infinite", "beyond the range of float32"),
    ):
        counts = {name: count for name, each in collectors.items() if (count := getattr(each, attribute))}
        if counts:
            values = numbers.counted(sum(counts.values()), "value")
            notes.append(f"{what}: {values} in {numbers.listed(counts)}: {why}")
    return {name: each for name, each in points.items() if len(each.steps)}


def free_name(taken: Container[str], *names: str) -> str:
    """The first of some names that is not taken; if all are, the last with a number."""
    numbered = (f"{names[-1]} {number}" for number in count(2))
    return next(name for name in chain(names, numbered) if name not in taken)


TRAINING_WORDS = frozenset({"train", "training"})
VALIDATION_WORDS = frozenset({"val", "valid", "validation", "eval", "evaluation"})

_PREFIX = re.compile(r"(?P<word>[a-z]+)[/_.](?P<name>.+)", re.IGNORECASE)
_SUFFIX = re.compile(r"(?P<name>.+)/(?P<word>[a-z]+)", re.IGNORECASE)


def _split_name(name: str) -> tuple[bool, str]:
    """Split a metric's name: ``val_loss`` and ``Loss/val`` are the ``loss`` of validation, ``train/loss`` of training.

    Returns:
        Whether it is measured by validation, and its name without the word that says so.
    """
    for pattern in (_PREFIX, _SUFFIX):
        if found := pattern.fullmatch(name):
            word = found["word"].lower()
            if word in VALIDATION_WORDS:
                return True, found["name"]
            if word in TRAINING_WORDS:
                return False, found["name"]
    return False, name
