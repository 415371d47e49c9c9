"""A dataset's metadata, known before it is read."""

import re
from dataclasses import dataclass
from pathlib import Path

from accel_engine.data.pixel_scaling import PIXELS, ValueRange
from accel_engine.errors import PlanError


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A dataset that a plan can name.

    Attributes:
        name: Its name in plans and titles.
        summary: One line about it.
        reader: The module of this package whose ``read`` function reads it.
        shape: Shape of one example, without the batch; ``None`` before :func:`accel_engine.data.survey`.
        classes: Number of classes; ``None`` if unknown.
        examples: Number of training examples; ``None`` if unknown.
        validation_examples: Number of validation examples; ``None`` if unknown.
        path: The user's file or folder.
        value_range: Value range of the examples; ``None`` if unknown.
        notes: Notes for the user about the file.
    """

    name: str
    summary: str
    reader: str
    shape: tuple[int, ...] | None = None
    classes: int | None = None
    examples: int | None = None
    validation_examples: int | None = None
    path: Path | None = None
    value_range: ValueRange | None = PIXELS
    notes: tuple[str, ...] = ()


def parse_size(text: str) -> tuple[int, int]:
    """Parse ``HEIGHTxWIDTH`` (or one number for both) in pixels.

    Raises:
        PlanError: It has another format.
    """
    match = re.fullmatch(r"(\d+)(?:x(\d+))?", text)
    size = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not all(1 <= side <= 4096 for side in size):
        raise PlanError("image_size", text, "must be HEIGHTxWIDTH in pixels, e.g. 96x96")
    return size
