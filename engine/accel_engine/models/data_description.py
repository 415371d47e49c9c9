"""What a model's builder may know of the data; without TensorFlow."""

from dataclasses import dataclass
from math import prod

from accel_engine.data.structure import ArraySpec, Structure


@dataclass(frozen=True, slots=True)
class DataDescription:
    """The examples that a model is built for.

    Attributes:
        inputs: The :class:`~accel_engine.data.structure.ArraySpec` of every input of an example.
        targets: The same of its targets; ``None`` if there are none, or if they are unknown.
        class_names: Names of the classes; empty if there are none.
        vocabulary: The text of each token; empty if inputs are not tokens.
        task: The plan's task, or the one that the data suggests; ``auto`` if it is unknown.
        target_mean: Means of a regression's target values over the training examples; empty if they are unknown.
        target_variance: Their variances.
    """

    inputs: Structure
    targets: Structure = None
    class_names: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()
    task: str = "auto"
    target_mean: tuple[float, ...] = ()
    target_variance: tuple[float, ...] = ()

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """Shape of one example, without the batch; ``None`` if it has several inputs."""
        return self.inputs.shape if isinstance(self.inputs, ArraySpec) else None

    @property
    def dtype(self) -> str:
        """Type of the values of an example; empty if it has several inputs."""
        return self.inputs.dtype if isinstance(self.inputs, ArraySpec) else ""

    @property
    def classes(self) -> int:
        """Number of classes; 0 if there are none."""
        return len(self.class_names)

    @property
    def target_size(self) -> int:
        """Number of values of an example's target; 0 if it is unknown."""
        shape = self.targets.shape if isinstance(self.targets, ArraySpec) else (0,)
        return prod(side or 0 for side in shape)

    @property
    def has_integer_targets(self) -> bool:
        """Whether an example has one integer as its target, which may be a class."""
        targets = self.targets
        return isinstance(targets, ArraySpec) and "int" in targets.dtype and targets.shape in ((), (1,))
