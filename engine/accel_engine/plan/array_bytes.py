"""Bytes of a model and of a step on a replica: weights, gradients, slots, activations; what ``--remat auto`` saves."""

from dataclasses import dataclass

from accel_engine.plan import Plan

FLOAT32_BYTES = 4
"""Weights, gradients and slots are float32 under every precision."""

HALF_BYTES = 2
"""Activations have 16 bits under a mixed precision, and so has a copy of each weight."""

OPTIMIZER_SLOTS = {
    "auto": 2,
    "adam": 2,
    "adamw": 2,
    "nadam": 2,
    "adamax": 2,
    "rmsprop": 1,
    "sgd": 0,
    "adagrad": 1,
    "adadelta": 2,
    "adafactor": 1,
    "ftrl": 2,
    "lamb": 2,
    "lion": 1,
}
"""Slot variables per trainable weight of Keras' optimizers, with default arguments."""

MOVED_AT_A_TIME = 2
"""Weights whose optimizer state is on a device at a time, at most, if it is in host memory."""

WORTHWHILE = 0.7
"""Share of the activations that may still be saved, for ``auto`` to use rematerialization: it costs a forward pass."""


def optimizer_slots(plan: Plan) -> int:
    """Values that a plan's optimizer has for each trainable weight, with momentum and moving averages (EMA)."""
    with_momentum = plan.optimizer in ("sgd", "rmsprop") and bool(plan.momentum)
    return OPTIMIZER_SLOTS.get(plan.optimizer, 2) + with_momentum + (plan.ema_momentum is not None)


def weight_bytes(plan: Plan, parameters: int) -> int:
    """Bytes of weights, with their copies of 16 bits under a mixed precision."""
    return (FLOAT32_BYTES + (HALF_BYTES if _is_mixed(plan) else 0)) * parameters


def gradient_bytes(plan: Plan, trainable: int) -> int:
    """Bytes of the gradients of weights; gradients of micro-batches are accumulated in others."""
    return FLOAT32_BYTES * trainable * (2 if _micro_batches(plan) > 1 else 1)


def slot_bytes(plan: Plan, trainable: int) -> int:
    """Bytes of the optimizer's slots for weights."""
    return FLOAT32_BYTES * trainable * optimizer_slots(plan)


def slot_bytes_on_device(plan: Plan, trainable: int, widest: int = 0, replicas: int = 1) -> tuple[int, int]:
    """Bytes of the optimizer's slots on a device at a time, at least and at most.

    Args:
        plan: The plan.
        trainable: Values of all trainable weights.
        widest: Values of the largest of them; 0 if it is unknown.
        replicas: The replicas of the model.
    """
    least, more = {
        "host": (0, MOVED_AT_A_TIME * widest),
        "sharded": (trainable // replicas, trainable // replicas + widest),  # each weight has its state on one of them
    }.get(plan.optimizer_state, (trainable, trainable))
    return slot_bytes(plan, least), slot_bytes(plan, min(trainable, more) if widest else trainable)


def activation_bytes(plan: Plan, float32_bytes: int, batch: int) -> int:
    """Bytes of activations in the plan's precision, of one micro-batch.

    Args:
        plan: The plan.
        float32_bytes: Bytes of the activations of one example, in float32.
        batch: Examples per step on a replica.
    """
    examples = -(-batch // _micro_batches(plan))
    return examples * float32_bytes // (FLOAT32_BYTES // HALF_BYTES if _is_mixed(plan) else 1)


def _micro_batches(plan: Plan) -> int:
    return plan.micro_batches or 1


def _is_mixed(plan: Plan) -> bool:
    return plan.policy != "float32"


@dataclass(frozen=True, slots=True)
class StageShare:
    """The share of a model that a stage of a pipeline has."""

    weights: float
    """Share of the weights, 0 to 1."""
    activations: float
    """Share of the saved activations of an example, 0 to 1."""


@dataclass(frozen=True, slots=True)
class ModelSize:
    """The size of a model."""

    parameters: int = 0
    """Number of weights."""
    trainable: int = 0
    """Number of weights that train, at the latest from ``unfreeze_epoch`` on."""
    saved: int = 0
    """Bytes of the saved activations of one example, in float32: those that stay in memory for the backward pass; 0 if
    they are unknown."""
    largest: int = 0
    """Bytes of its largest activation, whose gradient the backward pass computes."""
    remat_share: float | None = None
    """Share of the saved activations that rematerialization still saves; ``None`` if it is unknown."""
    auto_activations: int = 0
    """Values of one example that are saved, as ``--remat auto`` counts them; 0 if it does not apply."""
    operations: int = 0
    """Number of operations of a training step in TensorFlow's graph; 0 if it could not be traced."""
    is_divisible: bool = True
    """Whether its step can be divided into micro-batches."""
    stages: tuple[tuple[StageShare, ...], ...] = ()
    """The stages of a pipeline on 2, 3, ... devices; none if it cannot be cut."""
    widest: int = 0
    """Number of values of the largest weight that trains; 0 if it is unknown."""

    @property
    def is_traced(self) -> bool:
        """Whether the activations are from a traced step, not the outputs of all layers."""
        return self.operations > 0


MICRO_BATCHES = 4
"""Micro-batches for each stage of a pipeline, unless the plan says how many: equal stages wait for less than a fifth of
a step."""


def micro_batch_count(batch: int, stages: int) -> int:
    """The micro-batches of a batch in a pipeline, unless the plan says how many: they are of equal size."""
    return max(count for count in range(1, min(batch, MICRO_BATCHES * stages) + 1) if batch % count == 0)


def in_flight(stage: int, stages: int, micro_batches: int) -> int:
    """Micro-batches whose activations a stage of a pipeline holds at a time at most, in the order 1F1B."""
    return min(micro_batches, stages - stage)


def step_bytes(plan: Plan, parameters: int, trainable: int, activations: int, batch: int, replicas: int) -> int:
    """Bytes that a step needs on a replica without rematerialization.

    Args:
        plan: The plan.
        parameters: Number of weights.
        trainable: Number of trainable weights.
        activations: Values that are saved for one example.
        batch: Examples per step on a replica.
        replicas: The replicas of the model.
    """
    return (
        weight_bytes(plan, parameters)
        + gradient_bytes(plan, trainable)
        + slot_bytes_on_device(plan, trainable, replicas=replicas)[0]
        + activation_bytes(plan, FLOAT32_BYTES * activations, batch)
    )


def saves_enough(activations: int | None, share: float | None) -> bool:
    """Whether rematerialization is known to save enough of a model's activations.

    Args:
        activations: Values that are saved for one example; ``None`` or 0 if unknown.
        share: The share of them that is still saved with it; ``None`` if unknown.
    """
    return bool(activations) and share is not None and share <= WORTHWHILE
