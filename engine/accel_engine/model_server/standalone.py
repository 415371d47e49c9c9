"""The contents of a server that stands alone: these modules of accel-tui, and the libraries that its model needs."""

import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from accel_engine.model_server.service import Service

PACKAGE = "accel_engine"

_MODULES = """
    arrow control_groups data data.changes data.characters data.class_weight data.data_options data.dataset
    data.file_kinds data.folders data.folders.sound_files data.pixel_scaling data.roles data.series data.series.series
    data.series.series_parts data.series.windowed data.source data.splits data.standardization data.structure
    data.tables data.tables.category_values data.tables.column_reading data.tables.columns data.tables.csv_text
    data.tables.dates data.tables.number_texts data.tables.preprocessing data.tables.raw_inputs
    data.tables.rows_to_predict data.tables.table data.tables.table_file data.tables.table_series data.tables.targets
    data.tables.valid_rows data.targets errors files formats formats.onnx_format formats.savedmodel_format
    formats.tflite_format image_files inference inference.origin inference.output_differences
    inference.output_prediction inference.runtime inference.savedmodel_runtime inference.text_encoding json_values
    memory model_server model_server.__main__ model_server.access model_server.application model_server.back_end
    model_server.back_end_messages model_server.back_end_process model_server.files model_server.grpc_messages
    model_server.grpc_server model_server.metrics model_server.open_inference model_server.openapi model_server.probe
    model_server.protocols model_server.request_error model_server.rest_v1 model_server.serve
    model_server.served_model model_server.service model_server.serving_grpc model_server.standalone
    model_server.tensors models models.applications models.data_description models.model_entry models.model_files
    service_client service_client.rest_v2 service_client.service_runtime service_client.tensor_values
    service_client.transport text user_code user_paths version words words.numbers
"""

MODULES = tuple(_MODULES.split())
"""All modules that a server, and the test of its folder, import, without those that only writing a model needs."""

FILES = ("model_server/page/page.html", "model_server/page/page.css", "model_server/page/page.js")
"""The files that it reads besides modules."""

SERVER = (
    *("msgspec", "numpy", "orjson", "prometheus-client", "python-multipart", "starlette", "uvicorn", "httptools"),
    *("uvloop", "grpcio", "grpcio-health-checking", "grpcio-reflection", "protobuf", "pillow", "psutil", "soundfile"),
)
"""The libraries of a server."""

RUNTIMES = {"onnx": ("onnxruntime",), "tflite": ("ai-edge-litert",), "savedmodel": ("tensorflow",)}
"""The libraries that run a model, by its format."""

OF_TABLES = ("pyarrow",)
"""The libraries that read tables."""


def copy_server(into: Path) -> None:
    """Copy the modules of the server.

    Args:
        into: Gets the folder ``accel_engine``; with it on its path, Python runs ``accel_engine.model_server``.

    Raises:
        OSError: A module cannot be written.
    """
    source = Path(__file__).parent.parent
    for module in MODULES:
        parts = module.split(".")
        path = Path(*parts, "__init__.py") if (source / Path(*parts)).is_dir() else Path(*parts).with_suffix(".py")
        _copy(source / path, into / PACKAGE / path)
    _copy(source / "__init__.py", into / PACKAGE / "__init__.py")
    for name in FILES:
        _copy(source / name, into / PACKAGE / name)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def requirements(service: Service) -> list[str]:
    """The lines of a ``requirements.txt`` for a model, with the versions that are installed here.

    TensorFlow is ``tensorflow`` whatever is installed, in the version that wrote the SavedModel.
    """
    names = [*SERVER, *RUNTIMES[service.model.format]]
    names += OF_TABLES if service.files.kind in ("table", "series", "text") else ()
    return sorted(f"{name}{_pin(name, service)}" for name in names)


def _pin(name: str, service: Service) -> str:
    found = service.versions.get(name, "") if name == "tensorflow" else _version(name)
    return f"=={found}" if found else ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
