"""Asks for an evaluation of trained models."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from accel_engine.data import FILE_SUFFIXES
from accel_engine.errors import PlanError
from accel_engine.json_values import json_number
from accel_engine.plan.options import OptionSpec, option
from accel_engine.requests.protocol.model_reference import CHECKPOINT, DEVICE, SPLIT, ModelReference
from accel_engine.requests.protocol.request import ComputeDevice, DeviceRequest, EngineRequest

MIN_BEYOND = 5
"""Resamples beyond an interval at least, for its ends to be measured."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A value with its confidence interval; ``None`` for what is not a finite number."""

    value: float | None
    """What was measured."""
    low: float | None
    """The lower end of the interval."""
    high: float | None
    """The upper end."""

    @classmethod
    def of(cls, value: float, low: float, high: float) -> Self:
        """Make a measurement of numbers that may not be finite."""
        return cls(json_number(value), json_number(low), json_number(high))


@dataclass(frozen=True, slots=True)
class ClassScores:
    """The figures of a class."""

    name: str
    examples: int
    """How many examples are of it."""
    precision: Measurement
    """Share of the predictions of the class that are right."""
    recall: Measurement
    """Share of its examples that are predicted as it."""
    f1: Measurement
    """The harmonic mean of both."""


@dataclass(frozen=True, slots=True)
class EvaluatedModel:
    """A model's evaluation."""

    name: str
    """The run's id, or the file's name."""
    step: int
    """Steps that it was trained for; 0 for a file."""
    metrics: Mapping[str, Measurement]
    """By Keras' names, the loss first."""
    classes: tuple[ClassScores, ...]
    """The scores of each class, for a classifier."""
    notes: tuple[str, ...]
    """Warnings for the user."""
    baseline: Mapping[str, float | None] = field(default_factory=dict)
    """What a prediction that has learned nothing reaches on the same examples, by the same names; empty if unknown."""
    baseline_name: str = ""
    """What that predicts, such as ``most frequent class: cat``; empty if unknown."""


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """How much more a metric of one model is than of another, on the same examples."""

    measured: Measurement
    """The difference, with an interval from resampling the examples of both together."""
    p: float | None
    """The probability of at least this difference if both models are equally good, from swapping their results of
    each example at random; ``None`` if they cannot be swapped."""
    is_better: bool | None
    """Whether it is an improvement; ``None`` if there is no difference, or the name does not tell."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A model compared with the first one."""

    name: str
    than: str
    """The first one."""
    metrics: Mapping[str, MetricDifference]
    """The metrics of both, by name."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Models evaluated on the same examples."""

    split: str
    """The examples: ``test``, ``validation`` or ``training``, or the file name of other data."""
    examples: int
    """Their number."""
    models: tuple[EvaluatedModel, ...]
    """In the order in which they were given."""
    differences: tuple[Difference, ...]
    """The differences of each model but the first to the first."""
    device: ComputeDevice = field(default_factory=ComputeDevice)
    """The device that computed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """How models are evaluated.

    Raises:
        PlanError: There are too few resamples for the level.
    """

    data: str = option(
        "",
        OptionSpec(
            "Other data than the runs', as in train.",
            str,
            hint="the run's data; a path or a name for other data",
            suffixes=FILE_SUFFIXES,
        ),
    )
    """Other data than the runs'; empty for theirs."""
    split: str = option("auto", SPLIT)
    """``test``, ``validation`` or ``training``; ``auto`` is ``test`` where there are such examples."""
    checkpoint: str = option("auto", CHECKPOINT)
    """``best``, ``last`` or a step; ``auto`` is ``best`` for runs that restore their best weights."""
    resamples: int = option(1000, OptionSpec("Draws for intervals.", int, minimum=100, maximum=1_000_000))
    """How often examples are drawn for intervals."""
    confidence: float = option(
        0.95, OptionSpec("Level of the confidence intervals.", float, minimum=0.5, maximum=0.999)
    )
    """The level of the intervals, 0 to 1."""
    seed: int = 0
    """The seed of the random draws."""
    device: str = option("auto", DEVICE)
    """``auto``, ``cpu`` or a GPU such as ``gpu:0``."""

    def __post_init__(self) -> None:
        if self.resamples * (1 - self.confidence) < MIN_BEYOND:
            least = math.ceil(MIN_BEYOND / (1 - self.confidence))
            raise PlanError("confidence", self.confidence, f"needs --resamples {least} at least")


@dataclass(frozen=True, slots=True)
class EvaluationRequest(DeviceRequest, EngineRequest[Evaluation]):
    """A request to evaluate models on the same examples."""

    function: ClassVar = "accel_engine.trained.evaluation.evaluate:evaluate"
    result: ClassVar = Evaluation

    models: tuple[ModelReference, ...]
    options: EvaluationOptions = EvaluationOptions()
    device: ComputeDevice = field(default_factory=ComputeDevice, kw_only=True)
    """See :class:`DeviceRequest`."""

    @property
    def wanted_device(self) -> str:
        """See :attr:`DeviceRequest.wanted_device`."""
        return self.options.device

    @property
    def model_paths(self) -> tuple[Path, ...]:
        """See :attr:`DeviceRequest.model_paths`."""
        return tuple(each.path for each in self.models)

    def check(self) -> None:
        """See :meth:`EngineRequest.check`; runs need a checkpoint."""
        for model in self.models:
            model.check()


REQUEST = EvaluationRequest
