"""A model's input, its data and its layers, as runs store them."""

from collections.abc import Mapping
from dataclasses import dataclass

from accel_engine.data.pixel_scaling import is_image
from accel_engine.json_values import Count, Number, Text


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The input of a run's model, and its classes.

    Attributes:
        shape: Shape of one example.
        names: Class names.
        scale: Factor that raw values are multiplied by.
        low: The raw value that is black in an image.
        high: The raw value that is white.
        integers: Whether raw values are bytes.
    """

    shape: tuple[Count, ...]
    names: tuple[Text, ...]
    scale: Number
    low: Number
    high: Number
    integers: bool

    @property
    def is_image(self) -> bool:
        """Whether an example has the shape of an image."""
        return is_image(self.shape)


@dataclass(frozen=True, slots=True)
class DataFingerprint:
    """What a run's data was when its training began.

    Attributes:
        parts: Hashes, by what they are of; see :mod:`accel_engine.data.fingerprint`.
    """

    parts: Mapping[str, Text]


@dataclass(frozen=True, slots=True)
class Layer:
    """A row of the layer table.

    Attributes:
        name: The layer's name.
        kind: Its class.
        depth: Number of nested models around it; 0 for a layer of the model itself.
        shape: Output shape for one example; ``None`` if it is known only at run time.
        parameters: Number of weights; for a nested model, those of its layers included.
        trainable: Number of trainable weights.
        flops: Floating-point operations of a training step, gradients included; ``None`` if not counted.
        inner: Whether it is a nested model whose layers follow.
    """

    name: Text
    kind: Text
    depth: Count
    shape: tuple[Count | None, ...] | None
    parameters: Count
    trainable: Count
    flops: Number | None
    inner: bool = False


@dataclass(frozen=True, slots=True)
class LayerTable:
    """A model's layers, in order.

    Attributes:
        layers: The layers; a nested model is followed by its own.
        flops: FLOPs of a whole training step; ``None`` if they cannot be counted.
        rest: FLOPs of the step that belong to no layer.
        reason: Why FLOPs cannot be counted.
    """

    layers: tuple[Layer, ...]
    flops: Number | None = None
    rest: Number = 0.0
    reason: Text = ""
