"""What is said of a model in the catalogue."""

from dataclasses import dataclass

Shape = tuple[int, ...]
"""Shape of one example, without the batch: ``(height, width, channels)`` for images."""


def shape_text(shape: tuple[int | None, ...]) -> str:
    """A shape as people write it, such as ``28x28x1``, with ``?`` for a side of any length."""
    return "x".join("?" if side is None else str(side) for side in shape) or "single numbers"


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model that can be asked for by name.

    Attributes:
        name: What plans call it.
        summary: What it is, in a line.
        builder: ``module:function``, called with ``input_shape`` and ``classes``; returns an uncompiled
            Keras model that ends in probabilities.
        minimum_size: The smallest height and width it takes; 0 when it takes any shape at all.
        channels: The numbers of channels it takes; any when empty.
        preprocesses: Whether it scales raw pixels by itself.
        learning_rate: A learning rate for Adam at which it trains well.
        earlier: Builders of earlier versions, newest first, for runs that were trained with them.
    """

    name: str
    summary: str
    builder: str
    minimum_size: int = 0
    channels: tuple[int, ...] = ()
    preprocesses: bool = False
    learning_rate: float = 1e-3
    earlier: tuple[str, ...] = ()

    @property
    def takes(self) -> str:
        """What data it takes, in words."""
        if not self.minimum_size:
            return "examples of any shape"
        channels = f" with {' or '.join(map(str, self.channels))} channels" if self.channels else ""
        return f"images of at least {self.minimum_size}x{self.minimum_size}{channels}"

    def mismatch(self, shape: Shape) -> str:
        """Say why it cannot take examples of this shape; nothing when it can."""
        if not self.minimum_size:
            return ""
        fits = (
            len(shape) == 3 and min(shape[:2]) >= self.minimum_size and (not self.channels or shape[2] in self.channels)
        )
        if fits:
            return ""
        hint = "" if len(shape) == 3 else ", not images with height, width and channels"
        return f"model {self.name} takes {self.takes}; data has {shape_text(shape)}{hint}"
