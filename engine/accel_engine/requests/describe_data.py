"""Asks for a description of data that only a program can tell about, such as what a user's function returns."""

from dataclasses import dataclass
from typing import ClassVar

from accel_engine.data_profile.described_data import DescribedData
from accel_engine.plan import Plan
from accel_engine.requests.protocol.request import EngineRequest


@dataclass(frozen=True, slots=True)
class DataRequest(EngineRequest[DescribedData]):
    """A request to load a plan's data and describe it."""

    function: ClassVar = "accel_engine.engine_main.preview_server:answer_preview"
    result: ClassVar = DescribedData

    plan: Plan
    """Names the data, and how it is read and split."""


REQUEST = DataRequest
