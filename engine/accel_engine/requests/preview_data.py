"""Asks for a description of data that can be read without TensorFlow, while a plan is filled in."""

from dataclasses import dataclass
from typing import ClassVar

from accel_engine.data_profile.described_data import DescribedData
from accel_engine.plan import Plan
from accel_engine.requests.protocol.request import EngineRequest


@dataclass(frozen=True, slots=True)
class PreviewRequest(EngineRequest[DescribedData]):
    """A request to read a plan's data and describe it, whose process reads it alone and imports no TensorFlow.

    Attributes:
        plan: Names the data, and how it is read and split; its source loads without TensorFlow.
    """

    function: ClassVar = "accel_engine.engine_main.preview_server:answer_preview"
    result: ClassVar = DescribedData
    needs_tensorflow: ClassVar = False

    plan: Plan


REQUEST = PreviewRequest
