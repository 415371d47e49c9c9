"""What takes the memory of a run: weights, optimizer, and the activations of its layers."""

from collections.abc import Iterator
from math import prod

from accel_engine.advice.finding import Evidence
from accel_engine.advice.recorded import Recorded
from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import FLOAT32_BYTES, activation_bytes, gradient_bytes, slot_bytes, weight_bytes
from accel_engine.words.numbers import size

LAYERS = 3
"""Layers that are named, those with the largest outputs."""


def contents(recorded: Recorded) -> Iterator[Evidence]:
    """The computed bytes of the arrays of a step on a replica, the largest outputs of layers last."""
    built, plan = recorded.built, recorded.plan or Plan()
    if built is None or built.parameters is None:
        return
    trainable = built.parameters if built.trainable is None else built.trainable
    parts = {
        "weights": weight_bytes(plan, built.parameters),
        "gradients": gradient_bytes(plan, trainable),
        "optimizer state": slot_bytes(plan, trainable),
    }
    layers = _outputs(recorded, plan, built.per_replica_batch or 0)
    if layers:
        parts["outputs of layers"] = sum(layers.values())
    yield Evidence("computed: " + ", ".join(f"{name} {size(nbytes)}" for name, nbytes in parts.items()))
    largest = sorted(layers.items(), key=lambda item: -item[1])[:LAYERS]
    if largest:
        yield Evidence("largest outputs: " + ", ".join(f"{name} {size(nbytes)}" for name, nbytes in largest))


def _outputs(recorded: Recorded, plan: Plan, batch: int) -> dict[str, int]:
    """Bytes of the output of each layer for a batch, by name; layers within others are left out."""
    table = recorded.diagnostics.layers
    found: dict[str, int] = {}
    for layer in table.layers if table and batch else ():
        shape = [side for side in layer.shape or () if side]
        if shape and not layer.inner:
            found[layer.name] = activation_bytes(plan, FLOAT32_BYTES * prod(shape), batch)
    return found
