"""Entries of the catalogue of models."""

from dataclasses import dataclass

Shape = tuple[int, ...]
"""Shape of one example, without the batch: ``(height, width, channels)`` for images."""


def shape_text(shape: tuple[int | None, ...]) -> str:
    """Format a shape, such as ``28x28x1``, with ``?`` for a dimension of any size."""
    return "x".join("?" if side is None else str(side) for side in shape) or "single numbers"


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model of the catalogue.

    Attributes:
        name: Its name in plans.
        summary: One-line description.
        builder: ``module:function``, called with ``input_shape`` and ``classes``; returns an uncompiled
            Keras model that outputs probabilities.
        minimum_size: The smallest height and width; 0 for examples of any shape.
        channels: The supported numbers of channels; empty for any.
        preprocesses: Whether it has its own preprocessing layers.
        learning_rate: The default learning rate with Adam.
        earlier: Builders of earlier versions, newest first, for runs that were trained with them.
        tasks: The tasks that it can be built for; those other than classification need a builder that takes an
            ``activation``.
        imagenet: Whether Keras has ImageNet weights for it.
    """

    name: str
    summary: str
    builder: str
    minimum_size: int = 0
    channels: tuple[int, ...] = ()
    preprocesses: bool = False
    learning_rate: float = 1e-3
    earlier: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ("classification",)
    imagenet: bool = False

    @property
    def takes(self) -> str:
        """Description of the data it accepts."""
        if not self.minimum_size:
            return "examples of any shape"
        channels = f" with {' or '.join(map(str, self.channels))} channels" if self.channels else ""
        return f"images of at least {self.minimum_size}x{self.minimum_size}{channels}"

    def mismatch(
        self, shape: tuple[int | None, ...] | None, task: str = "auto", classes: int | None = None, *, dtype: str = ""
    ) -> str:
        """Return why it does not accept some data; empty if it does.

        Args:
            shape: Shape of one example; ``None`` if it has several inputs.
            task: The task; ``auto`` if it is unknown.
            classes: Number of classes; ``None`` if it is unknown.
            dtype: Type of its values; empty if it is unknown or has several inputs.
        """
        if dtype == "string":
            return f"model {self.name} takes numbers; the data is text: use a model of your own, with TextVectorization"
        wanted = "classification" if task == "auto" and classes != 0 else task
        if wanted not in self.tasks:
            learned = f"the data is for {task}" if task != "auto" else "the data has no classes"
            return f"model {self.name} is for {' or '.join(self.tasks)}; {learned}: use a model of your own"
        if shape is None:
            return f"model {self.name} takes {self.takes}; the data has several inputs: use a model of your own"
        if not self.minimum_size:
            return ""
        fits = (
            len(shape) == 3
            and all((side or self.minimum_size) >= self.minimum_size for side in shape[:2])
            and (not self.channels or shape[2] in self.channels)
        )
        if fits:
            return ""
        hint = "" if len(shape) == 3 else ", not images (height, width, channels)"
        return f"model {self.name} takes {self.takes}; the data has {shape_text(shape)}{hint}"
