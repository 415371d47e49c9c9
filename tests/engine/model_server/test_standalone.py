"""A server that stands alone has all that it imports, and no more of accel-tui."""

import os
from pathlib import Path

import grimp

from accel_engine.model_server.service import read_service
from accel_engine.model_server.standalone import MODULES, copy_server, requirements

from .conftest import Start

ROOTS = [f"formats.{name}_format" for name in ("onnx", "tflite", "savedmodel")]

OF_THE_TEST = "service_client.rest_v2"
"""What the test of a folder imports besides."""

OF_WRITING = {
    *("formats.serving_warmup", "data.standardization_model"),
    *("private_names.keras_names", "private_names.tflite_flatbuffer"),
}
"""What the formats import within functions that write models."""


def closure() -> set[str]:
    graph = grimp.build_graph("accel_engine", cache_dir=None)
    waiting = [f"accel_engine.{name}" for name in (*ROOTS, OF_THE_TEST)]
    waiting += [name for name in graph.modules if name.startswith("accel_engine.model_server.")]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found or name.removeprefix("accel_engine.") in OF_WRITING:
            continue
        found.add(name)
        waiting += graph.find_modules_directly_imported_by(name)
        if "." in name:
            waiting.append(name.rpartition(".")[0])
    return {name.removeprefix("accel_engine.") for name in found} - {"accel_engine"}


def test_all_that_is_imported_is_listed() -> None:
    assert sorted(MODULES) == sorted(closure())


def test_a_copy_serves_alone(start: Start, folders: Path, tmp_path: Path) -> None:
    copy_server(tmp_path / "server")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "server")}  # before the package that is installed
    server = start(folders / "images", "--grpc-port", "0", environment=environment)
    assert server.ask("/v2/models/small/ready").status == 200
    assert "page.js" in server.ask("/").content.decode()
    assert server.ask("/predict", b"no picture").status == 400
    loaded = {str(tmp_path / "server")}
    for process in (server.process.pid, server.back_end.pid):
        maps = Path(f"/proc/{process}/environ").read_bytes()
        assert all(place.encode() in maps for place in loaded)
    assert server.stop() == 0


def test_requirements_have_no_tensorflow_unless_the_model_needs_it(folders: Path) -> None:
    lines = requirements(read_service(folders / "images"))
    names = {line.partition("==")[0] for line in lines}
    assert {"onnxruntime", "uvicorn", "starlette", "numpy"} <= names
    assert not {"tensorflow", "keras", "pyarrow"} & names
    assert all("==" in line for line in lines)
