"""Asks for the folder of a served model: a verified export, its description and held-out examples."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from accel_engine.requests.export_model import ExportRequest


@dataclass(frozen=True, slots=True)
class ServiceRequest(ExportRequest):
    """A request to export a trained model, and to write what a server needs beside it.

    It has one target, in ``service_folder``: for a SavedModel ``model/1``, for other formats ``model`` with their
    suffix. If the export is written, ``accel_engine.model_server.service.read_service`` reads the description.

    Attributes:
        service_folder: Where the description is written.
        served_name: The name in URLs; empty for the run's id.
        version: A number.
        batch_sizes: Sizes of batches, in order.
        held_out: Number of examples that are kept for the check of a server, at most.
    """

    function: ClassVar = "accel_engine.model_export.service_folder:write_service_folder"

    service_folder: Path = Path()
    served_name: str = ""
    version: str = "1"
    batch_sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    held_out: int = 64


REQUEST = ServiceRequest
