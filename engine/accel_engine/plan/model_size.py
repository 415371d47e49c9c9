"""The size of a plan's model, as an engine describes it; without TensorFlow."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LayerActivations:
    """The activations of a layer for one example, in float32.

    Attributes:
        kept: Bytes that the backward pass reads.
        output: Bytes of the layer's output; 0 if it is unknown.
    """

    kept: int
    output: int = 0


@dataclass(frozen=True, slots=True)
class ModelSize:
    """The size of a model.

    Attributes:
        parameters: Number of weights.
        trainable: Number of trainable weights.
        layers: The activations of each layer, in the order of the model.
        operations: Number of operations of a training step in TensorFlow's graph; 0 if it could not be traced.
        is_divisible: Whether its step can be divided into micro-batches.
    """

    parameters: int
    trainable: int
    layers: tuple[LayerActivations, ...] = ()
    operations: int = 0
    is_divisible: bool = True

    @property
    def is_traced(self) -> bool:
        """Whether the activations are those of a traced step, not the outputs of all layers."""
        return self.operations > 0


def kept_bytes(layers: Sequence[LayerActivations], *, remat: bool) -> int:
    """The bytes of activations that one example needs at the same time, in float32.

    With rematerialization the model is cut into about ``sqrt(layers)`` segments (Chen et al., "Training Deep Nets with
    Sublinear Memory Cost", 2016). The output of each segment is kept, and the activations of one segment at a time,
    the largest of which counts.

    Args:
        layers: The activations of each layer.
        remat: Whether segments are recomputed in the backward pass.
    """
    if not remat or not layers:
        return sum(layer.kept for layer in layers)
    length = max(1, round(len(layers) ** 0.5))
    segments = [layers[first : first + length] for first in range(0, len(layers), length)]
    return sum(segment[-1].output for segment in segments) + max(
        sum(layer.kept for layer in segment) for segment in segments
    )


def largest_bytes(layers: Sequence[LayerActivations]) -> int:
    """The bytes of the largest activation of one example, in float32: the backward pass computes its gradient."""
    return max((max(layer.kept, layer.output) for layer in layers), default=0)
