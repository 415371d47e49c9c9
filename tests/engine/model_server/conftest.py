"""Servers of small ONNX models, which no training made."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import psutil
import pytest
from onnx import helper, numpy_helper

from accel_engine.model_server.service import (
    Meaning,
    Scale,
    ServedModelFile,
    Service,
    Tensor,
    UploadForm,
    write_examples,
    write_service,
)
from waiting import wait_until

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


def probabilities(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x.astype(np.float32).reshape(len(x), -1) @ WEIGHTS)
    return powers / powers.sum(-1, keepdims=True)


def write_folder(folder: Path, dtype: str = "float32", version: str = "1", scale: float = 1.0) -> Path:
    """A classifier of images of 2x2 pixels, or of four numbers: the softmax of their sums with weights."""
    folder.mkdir()
    is_image = dtype == "uint8"
    shape = (2, 2, 1) if is_image else (4,)
    nodes = [
        helper.make_node("Cast", ["x"], ["number"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Flatten", ["number"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
    ]
    kind = onnx.TensorProto.UINT8 if is_image else onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, ["n", *shape])],
        [helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(WEIGHTS * np.float32(scale), "w")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), folder / "model.onnx"
    )
    x = np.random.default_rng(0).integers(0, 3, (40, *shape)).astype(dtype)
    write_examples(folder, {"x": x}, {"probabilities": probabilities(x * np.float32(scale))})
    service = Service(
        name="small",
        version=version,
        run="abcd-small",
        task="classification",
        kind="images" if is_image else "vectors",
        model=ServedModelFile("onnx", "none", "model.onnx", 1e-5),
        inputs=(Tensor("x", shape, dtype),),
        outputs=(Tensor("probabilities", (3,), "float32"),),
        scales={"probabilities": Scale()},
        batch_sizes=(1, 2, 4, 8),
        class_names=("a", "b", "c"),
        examples=40,
        files=UploadForm("images") if is_image else UploadForm(),
        meanings=(Meaning("probabilities", "", "classification", ("a", "b", "c")),),
    )
    write_service(folder, service)
    return folder


@dataclass
class Answer:
    status: int
    headers: Any
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> str:
        return self.json["error"]


@dataclass
class Server:
    """A server in a process."""

    folder: Path
    process: subprocess.Popen[bytes]
    state_file: Path
    log: Path
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.state['port']}"

    @property
    def back_end(self) -> psutil.Process:
        """The newest one; the server's own process while there is none."""
        server = psutil.Process(self.process.pid)
        return max(server.children(), key=lambda child: child.create_time(), default=server)

    def has_other_back_end(self, than: psutil.Process) -> bool:
        """Whether another one is ready. The process is looked at first: only it can make the server ready then."""
        return self.is_started_again(than) and self.ask("/readyz").status == 200

    def is_started_again(self, than: psutil.Process) -> bool:
        return self.back_end.pid not in (than.pid, self.process.pid)

    def ask(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, body, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def metric(self, name: str) -> float:
        lines = self.ask("/metrics").content.decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        def is_true_now() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return is_true()

        wait_until(is_true_now, timeout=120)

    def wait_until_listening(self) -> None:
        self.wait_until(self.state_file.exists)
        self.state = json.loads(self.state_file.read_text())

    def wait_until_ready(self) -> None:
        self.wait_until(lambda: self.ask("/readyz").status == 200)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


Start = Callable[..., Server]


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts servers, which end with the tests."""
    started: list[Server] = []

    def begin(folder: Path, *options: str, is_ready: bool = True, environment: dict[str, str] | None = None) -> Server:
        place = tmp_path_factory.mktemp("server")
        log = place / "log.txt"
        command = [sys.executable, "-m", "accel_engine.model_server", str(folder), "--port", "0", "--threads", "1"]
        command += ["--state-file", str(place / "state.json"), *options]
        with log.open("wb") as file:
            process = subprocess.Popen(command, stderr=file, cwd=place, env=environment)
        server = Server(folder, process, place / "state.json", log)
        started.append(server)
        server.wait_until_listening()
        if is_ready:
            server.wait_until_ready()
        return server

    yield begin
    for each in started:
        if each.process.poll() is None:
            with suppress(psutil.NoSuchProcess):
                each.back_end.resume()
            each.process.terminate()
    for each in started:
        each.process.wait(30)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("folders")
    write_folder(place / "numbers")
    write_folder(place / "images", "uint8")
    return place


@pytest.fixture(scope="session")
def numbers(start: Start, folders: Path) -> Server:
    """A server that no test changes."""
    return start(folders / "numbers", "--grpc-port", "0")


@pytest.fixture(scope="session")
def images(start: Start, folders: Path) -> Server:
    """The same of images."""
    return start(folders / "images")
