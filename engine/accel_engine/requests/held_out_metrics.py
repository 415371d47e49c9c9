"""Asks for the metrics of models whose inference is to be measured, on examples that training did not see."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from accel_engine.inference.candidate import HeldOutMetrics
from accel_engine.requests.bench_models import BenchedModel, BenchOptions
from accel_engine.requests.protocol.request import EngineRequest


@dataclass(frozen=True, slots=True)
class MetricsOfModels:
    """The metrics of some models."""

    models: tuple[Mapping[str, HeldOutMetrics], ...]
    """Of each model by the precision of its layers; by an empty text, the metrics of a file."""
    notes: tuple[str, ...]
    """Why some have none."""


@dataclass(frozen=True, slots=True)
class HeldOutRequest(EngineRequest[MetricsOfModels]):
    """A request for the metrics of some models."""

    function: ClassVar = "accel_engine.model_export.held_out_metrics:held_out_metrics"
    result: ClassVar = MetricsOfModels

    models: tuple[BenchedModel, ...]
    """The models; those without data have no metrics."""
    options: BenchOptions
    """How they will be measured."""

    @property
    def environment(self) -> Mapping[str, str]:
        """See :attr:`BenchOptions.environment`."""
        return self.options.environment


REQUEST = HeldOutRequest
