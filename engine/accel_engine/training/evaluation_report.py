"""What a model says of the validation examples: which classes it confuses, and what it is the most wrong about."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.dataset import Dataset, Split
from accel_engine.run.diagnostics import EvaluationReport, InputSpec, SamplePrediction
from accel_engine.training.assembly import Assembly

MOST_CLASSES = 1000
"""Of more, it is not kept how often each is taken for each other."""

WORST = 64
"""Examples that are kept with their picture."""

LARGEST_PICTURE = 64
"""Pixels of the longer side of a picture that is kept."""

OWN_STEP = "the model has a train_step of its own, and what its outputs mean is not known"
"""Why nothing can be told of such a model."""

_LOOKED_AT = 256
"""Examples of which the range of numbers is found."""


class EvaluationReportBuilder:
    """Notes what a model says of each example of a validation, and finds what is worth a look.

    Args:
        intake: What the model takes.
        split: The validation examples.
        why_not: Why it cannot be told what the model takes examples for; empty when it can.
    """

    def __init__(self, intake: InputSpec, split: Split, why_not: str = "") -> None:
        self._intake = intake
        self._why_not = why_not
        self._split = split
        self._noted = np.zeros((0 if self._why_not else len(split), 3), np.float32)

    def note(self, rows: npt.NDArray[np.int32], said: npt.NDArray[np.float32], *, repeated: bool) -> None:
        """Note what was said of the examples of a step.

        Args:
            rows: Their places in the data, ``[replicas, batch]``; one that stands twice is noted once.
            said: Three numbers for each: the class that it is taken for, the probability of that one, and of its own.
            repeated: Whether all replicas had the same examples.
        """
        replicas = slice(1) if repeated else slice(None)
        self._noted[rows[replicas].reshape(-1)] = said.reshape(*rows.shape, 3)[replicas].reshape(-1, 3)

    def result(self) -> EvaluationReport:
        """What the validation found; call it when all examples were noted."""
        names, split = self._intake.names, self._split
        if self._why_not:
            return EvaluationReport(len(split), names, reason=self._why_not)
        labels, said = split.y, self._noted[:, 0].astype(np.int64)
        confidence, chance = np.nan_to_num(self._noted[:, 1:]).T
        classes = max(len(names), int(said.max()) + 1)
        names += tuple(map(str, range(len(names), classes)))
        counts, reasons = None, []
        if classes > MOST_CLASSES:
            reasons.append(f"of {classes:,} classes it is not kept which are confused, only of up to {MOST_CLASSES:,}")
        else:
            cells = np.bincount(labels.astype(np.int64) * classes + said, minlength=classes * classes)
            counts = cells.reshape(classes, classes).astype(np.int64)
        # What is wrong comes first, and of that what leaves the least to the right class.
        worst = np.lexsort((-confidence, chance, said == labels))[:WORST]
        pictures = None
        if self._intake.is_image:
            x = split.x[worst] if isinstance(split.x, np.ndarray) else split.x.take(worst)
            pictures = preview(x, self._intake)
        else:
            reasons.append(f"there is nothing to see: {in_words(self._intake.shape)}")
        judged = tuple(
            SamplePrediction(int(row), int(labels[row]), int(said[row]), float(confidence[row]), float(chance[row]))
            for row in worst
        )
        return EvaluationReport(len(split), names, counts, judged, pictures, "; ".join(reasons))


def why_not(assembly: Assembly) -> str:
    """Why it cannot be told what the model takes examples for; empty when it can."""
    if assembly.own_train_step:
        return OWN_STEP
    if not assembly.classifies:
        return "the model is no classifier: it has no output for each class"
    return ""


def intake_of(dataset: Dataset, scale: float) -> InputSpec:
    """What a model takes that is trained on the data.

    Args:
        dataset: The data.
        scale: What raw examples are multiplied with.
    """
    x = dataset.train.x
    integers = bool(x.dtype == np.uint8)
    low, high = 0.0, float(dataset.value_range.largest or 0)
    if not high:
        rows = np.arange(min(_LOOKED_AT, len(dataset.train)))
        some = x[rows] if isinstance(x, np.ndarray) else x.take(rows)
        low, high = _range(float(some.min()), float(some.max()))
    return InputSpec(dataset.shape, dataset.class_names, scale, low, high, integers)


def _range(least: float, largest: float) -> tuple[float, float]:
    """The range that numbers were brought to, as people do, of which these are the ends of some."""
    for low, high in ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)):
        if low <= least and largest <= high:
            return low, high
    return least, largest


def preview(x: npt.NDArray[Any], intake: InputSpec) -> npt.NDArray[np.uint8]:
    """Make pictures of raw images: bytes, and no larger than is kept.

    Args:
        x: ``[images, height, width, channels]``.
        intake: What they are.

    Returns:
        uint8, likewise.
    """
    longest = max(x.shape[1:3])
    for axis in (1, 2):
        side = x.shape[axis]
        wanted = max(1, side * LARGEST_PICTURE // longest)
        if wanted < side:
            edges = np.arange(wanted) * side // wanted
            lengths = np.diff(np.append(edges, side)).reshape(-1, *(1,) * (x.ndim - 1 - axis))
            x = np.add.reduceat(x, edges, axis=axis, dtype=np.float32) / lengths
    if (intake.low, intake.high) != (0.0, 255.0):
        x = (x - intake.low) * (255 / max(intake.high - intake.low, 1e-9))
    pixels: npt.NDArray[np.uint8] = np.rint(np.clip(x, 0, 255)).astype(np.uint8)
    return pixels


def in_words(shape: tuple[int, ...]) -> str:
    """Why examples of this shape are no images."""
    return f"examples of {'x'.join(map(str, shape)) or 'a single number'} are no images ({math.prod(shape):,} numbers)"
