"""The size of a plan's model, as an engine describes it; without TensorFlow."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelSize:
    """The size of a model.

    Attributes:
        parameters: Number of weights.
        trainable: Number of trainable weights.
        saved: Bytes of the saved activations of one example, in float32: those that stay in memory for the backward
            pass; 0 if they are unknown.
        largest: Bytes of its largest activation, whose gradient the backward pass computes.
        remat_share: Share of the saved activations that rematerialization still saves; ``None`` if it is unknown.
        auto_activations: Values of one example that are saved, as ``--remat auto`` counts them; 0 if it does not apply.
        operations: Number of operations of a training step in TensorFlow's graph; 0 if it could not be traced.
        is_divisible: Whether its step can be divided into micro-batches.
    """

    parameters: int = 0
    trainable: int = 0
    saved: int = 0
    largest: int = 0
    remat_share: float | None = None
    auto_activations: int = 0
    operations: int = 0
    is_divisible: bool = True

    @property
    def is_traced(self) -> bool:
        """Whether the activations are those of a traced step, not the outputs of all layers."""
        return self.operations > 0
