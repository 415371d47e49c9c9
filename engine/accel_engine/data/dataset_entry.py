"""What is known of a dataset before it is read."""

from dataclasses import dataclass
from pathlib import Path

from accel_engine.data.pixel_scaling import PIXELS, ValueRange


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A dataset that a plan can name.

    Attributes:
        name: What plans and titles call it.
        summary: What it is, in a line.
        reader: The module beside this one whose ``read`` function reads it.
        shape: Shape of one example, without the batch; ``None`` until :func:`accel_engine.data.survey`
            has looked into the file or folder.
        classes: Number of classes; ``None`` likewise.
        examples: Number of training examples; ``None`` likewise.
        validation_examples: Number of validation examples; ``None`` likewise.
        path: The user's file or folder.
        numbers: What is known of the numbers of examples; ``None`` likewise.
        notes: What the user should be told of the file.
    """

    name: str
    summary: str
    reader: str
    shape: tuple[int, ...] | None = None
    classes: int | None = None
    examples: int | None = None
    validation_examples: int | None = None
    path: Path | None = None
    numbers: ValueRange | None = PIXELS
    notes: tuple[str, ...] = ()
