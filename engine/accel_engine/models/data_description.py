"""The description of data for a model's builder; without TensorFlow."""

from dataclasses import dataclass
from math import prod
from typing import Any

from accel_engine.data.source import DatasetEntry
from accel_engine.data.structure import ArraySpec, Structure, flatten

TEXTS, TOKENS, IMAGES, SOUNDS, SEQUENCES = "texts", "tokens", "images", "sounds", "sequences"
NUMBERS, OTHER = "numbers", "other"
"""The forms of an example: a text; tokens ``[tokens]``; ``[height, width, channels]``; a sound ``[samples, 1]`` with a
sample rate; ``[time, channels]``; numbers ``[columns]`` or a single one; everything else, such as several inputs."""


@dataclass(frozen=True, slots=True)
class DataDescription:
    """The examples that a model is built for."""

    inputs: Structure
    """The :class:`~accel_engine.data.structure.ArraySpec` of every input of an example."""
    targets: Structure = None
    """The same for its targets; ``None`` if there are none, or if they are unknown."""
    class_names: tuple[str, ...] = ()
    """Names of the classes; empty if there are none."""
    vocabulary: tuple[str, ...] = ()
    """The text of each token; empty if inputs are not tokens."""
    task: str = "auto"
    """The plan's task, or the one that the data suggests; ``auto`` if it is unknown."""
    target_mean: tuple[float, ...] = ()
    """Means of a regression's target values over the training examples; empty if they are unknown."""
    target_variance: tuple[float, ...] = ()
    """Their variances."""
    kind: str = "arrays"
    """The kind of an example, as in :class:`accel_engine.data.dataset.Dataset`."""
    sample_rate: int = 0
    """Samples per second of sounds; 0 for other data."""
    texts: Any = None
    """Training examples that are texts, object ``[n]``; ``None`` for other data, and before it is read."""
    is_read: bool = True
    """Whether the data has been read. Before, the vocabulary and the texts are unknown."""
    classes_unknown: bool = False
    """Whether only reading the data can tell its classes."""
    has_standard_targets: bool = False
    """Whether numbers to predict are in standard deviations."""
    has_standard_windows: bool = False
    """Whether windows of a series are in standard deviations."""

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """Shape of one example, without the batch; ``None`` if it has several inputs."""
        return self.inputs.shape if isinstance(self.inputs, ArraySpec) else None

    @property
    def dtype(self) -> str:
        """Type of the values of an example; empty if it has several inputs."""
        return self.inputs.dtype if isinstance(self.inputs, ArraySpec) else ""

    @property
    def form(self) -> str:
        """The form of an example, such as :data:`IMAGES`."""
        if self.shape is None:
            return OTHER
        if self.dtype == "string":
            return TEXTS if self.shape in ((), (1,)) else OTHER
        is_tokens = bool(self.vocabulary) or self.kind == "tokens" or self.task == "sequence"
        if is_tokens and len(self.shape) == 1 and "int" in self.dtype:
            return TOKENS
        if self.sample_rate and len(self.shape) == 2 and self.shape[1] == 1:
            return SOUNDS
        return {0: NUMBERS, 1: NUMBERS, 2: SEQUENCES, 3: IMAGES}.get(len(self.shape), OTHER)

    @property
    def classes(self) -> int:
        """Number of classes; 0 if there are none, or if they are unknown."""
        return len(self.class_names)

    @property
    def learned_task(self) -> str:
        """The task; classification for data with classes that suggests none, ``auto`` if it is unknown."""
        return "classification" if self.task == "auto" and (self.classes or self.classes_unknown) else self.task

    @property
    def target_shape(self) -> tuple[int, ...]:
        """Shape of an example's target; ``(0,)`` if it is unknown."""
        shape = self.targets.shape if isinstance(self.targets, ArraySpec) else (0,)
        return tuple(side or 0 for side in shape)

    @property
    def target_size(self) -> int:
        """Number of values of an example's target; 0 if it is unknown."""
        return prod(self.target_shape)

    @property
    def output_size(self) -> int:
        """Number of outputs of an example, token or pixel: classes, or values to predict; 0 if it is unknown."""
        if self.task == "regression":
            return self.target_size
        return self.classes or (len(self.vocabulary) if self.task == "sequence" else 0)

    @property
    def is_size_unknown(self) -> bool:
        """Whether only reading the data can tell the sizes of a model, as with a vocabulary."""
        is_measured = self.output_size > 0 or self.task == "reconstruction"
        has_open_classes = self.classes_unknown and bool(self.class_names)  # the first rows may not have all
        has_open_vocabulary = self.form == TOKENS and not self.vocabulary
        return not self.is_read and (
            not is_measured or self.has_open_columns or has_open_classes or has_open_vocabulary
        )

    @property
    def has_open_columns(self) -> bool:
        """Whether it is a table whose first rows were read, so that the number of its features is unknown."""
        return self.kind == "table" and not self.is_read and self.shape == (None,)

    @property
    def has_integer_targets(self) -> bool:
        """Whether an example has one integer as its target, which may be a class."""
        targets = self.targets
        return isinstance(targets, ArraySpec) and "int" in targets.dtype and targets.shape in ((), (1,))

    @property
    def has_several_targets(self) -> bool:
        """Whether a model needs an output for each of several targets."""
        return len(flatten(self.targets)) > 1 and self.task != "reconstruction"


def describe_entry(entry: DatasetEntry, task: str) -> DataDescription | None:
    """The description of a dataset before it is read; ``None`` if the shape of an example is unknown.

    Args:
        entry: The dataset's entry, perhaps from a survey.
        task: The plan's task.
    """
    if entry.spec is not None:
        inputs, targets = entry.spec.inputs, entry.spec.targets
    elif entry.shape is not None:
        inputs, targets = ArraySpec(entry.shape, "float32"), ArraySpec((), "int32")
    else:
        return None
    return DataDescription(
        inputs,
        targets,
        entry.class_names or tuple(map(str, range(entry.classes or 0))),
        task=entry.task if task == "auto" else task,
        kind=entry.kind,
        sample_rate=entry.sample_rate,
        is_read=False,
        classes_unknown=entry.classes is None,
    )
