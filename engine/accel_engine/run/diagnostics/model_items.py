"""A model's input and its layers, as runs store them."""

from dataclasses import dataclass

from accel_engine.data.pixel_scaling import is_image
from accel_engine.json_values import Count, Number, Text


@dataclass(frozen=True, slots=True)
class InputSpec:
    """The input of a run's model, and its classes."""

    shape: tuple[Count, ...]
    """Shape of one example."""
    names: tuple[Text, ...]
    """Class names."""
    scale: Number
    """Factor that raw values are multiplied by."""
    low: Number
    """The raw value that is black in an image."""
    high: Number
    """The raw value that is white."""
    integers: bool
    """Whether raw values are bytes."""

    @property
    def is_image(self) -> bool:
        """Whether an example has the shape of an image."""
        return is_image(self.shape)


@dataclass(frozen=True, slots=True)
class Layer:
    """A row of the layer table."""

    name: Text
    """The layer's name."""
    kind: Text
    """Its class."""
    depth: Count
    """Number of nested models around it; 0 for a layer of the model itself."""
    shape: tuple[Count | None, ...] | None
    """Output shape for one example; ``None`` if it is known only at run time."""
    parameters: Count
    """Number of weights; for a nested model, with its layers'."""
    trainable: Count
    """Number of trainable weights."""
    flops: Number | None
    """Floating-point operations of a training step, gradients included; ``None`` if not counted."""
    inner: bool = False
    """Whether it is a nested model whose layers follow."""


@dataclass(frozen=True, slots=True)
class StageOfModel:
    """A stage of a model that a pipeline trains, as it was cut."""

    device: Text
    """TensorFlow's name of its device."""
    first: Text
    """Its first layer."""
    last: Text
    """Its last layer."""
    parameters: Count
    """Number of its weights, which are on its device."""
    memory: Count
    """Estimated bytes of its weights, gradients, optimizer state and activations."""
    work: Number
    """Its estimated share of the time of a step."""
    sent: Count
    """Bytes of the activations that later stages get of it, or of stages before it, in a step."""


@dataclass(frozen=True, slots=True)
class LayerTable:
    """A model's layers, in order."""

    layers: tuple[Layer, ...]
    """The layers; a nested model is followed by its own."""
    flops: Number | None = None
    """FLOPs of a whole training step; ``None`` if they cannot be counted."""
    rest: Number = 0.0
    """FLOPs of the step that belong to no layer."""
    reason: Text = ""
    """Why FLOPs cannot be counted."""
    stages: tuple[StageOfModel, ...] = ()
    """The stages of a pipeline, in order; empty without one."""
