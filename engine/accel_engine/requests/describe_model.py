"""Asks for the size of a plan's model, which is built without being trained."""

from dataclasses import dataclass
from typing import ClassVar

from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import ModelSize
from accel_engine.requests.protocol.request import EngineRequest


@dataclass(frozen=True, slots=True)
class ModelBlock:
    """Layers of a model that a drawing shows as one.

    Attributes:
        layers: Their classes, in their order.
        shape: Shape of the output of the last one for one example; empty if unknown.
        parameters: Number of weights, of all repetitions.
        count: How often the block is repeated.
        has_branches: Whether layers of it take other outputs than the one before them.
    """

    layers: tuple[str, ...]
    shape: tuple[int | None, ...] = ()
    parameters: int = 0
    count: int = 1
    has_branches: bool = False


@dataclass(frozen=True, slots=True)
class Description(ModelSize):
    """A plan's model, described without training it.

    Attributes:
        layers: Number of layers.
        examples: Number of training examples; ``None`` if unknown.
        data_bytes: Bytes of the training examples in memory; ``None`` if unknown.
        input_shape: Shape of one example.
        classes: Number of classes.
        preprocessing: The class of the model's preprocessing layer; empty if none was found.
        blocks: Its layers; empty if unknown.
        is_chain: Whether each block takes the output of the one before, and no other.
        problem: Why there is no description; the numbers are then 0.
    """

    layers: int = 0
    examples: int | None = None
    data_bytes: int | None = None
    input_shape: tuple[int | None, ...] = ()
    classes: int = 0
    preprocessing: str = ""
    blocks: tuple[ModelBlock, ...] = ()
    is_chain: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ModelRequest(EngineRequest[Description]):
    """A request to describe a plan's model.

    Attributes:
        plan: The plan.
        loads_data: Whether the data may be loaded where nothing else tells the model's size, such as a vocabulary.
    """

    function: ClassVar = "accel_engine.training.measure_model:describe_plan_model"
    result: ClassVar = Description

    plan: Plan
    loads_data: bool = True


REQUEST = ModelRequest
