"""Asks for the size of a plan's model, which is built without being trained."""

from dataclasses import dataclass
from typing import ClassVar

from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import ModelSize
from accel_engine.requests.protocol.request import EngineRequest


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
        problem: Why there is no description; the numbers are then 0.
    """

    layers: int = 0
    examples: int | None = None
    data_bytes: int | None = None
    input_shape: tuple[int | None, ...] = ()
    classes: int = 0
    preprocessing: str = ""
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
