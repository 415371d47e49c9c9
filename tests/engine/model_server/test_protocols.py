"""The server answers each protocol as independent clients and the protocols' own documents expect."""

import asyncio
import base64
import io
import json
import os
import socket
import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from PIL import Image
from tritonclient.grpc import service_pb2

from accel_engine.model_server.access import ServerAccess
from accel_engine.model_server.application import ServingState
from accel_engine.model_server.grpc_messages import POOL, message
from accel_engine.model_server.grpc_server import GrpcServer
from accel_engine.model_server.metrics import ServerMetrics
from accel_engine.model_server.served_model import Limits
from accel_engine.service_client.find_service import find_service, parse_url, served_run

from .conftest import Server, probabilities

X = np.array([[0, 1, 2, 3], [4, 3, 2, 1], [0, 0, 0, 0]], np.float32)
PREDICT, INFER = "/v1/models/small:predict", "/v2/models/small/infer"


def tensor(x: np.ndarray = X, **values: Any) -> dict[str, Any]:
    return {"name": "x", "shape": list(x.shape), "datatype": "FP32", "data": x.reshape(-1).tolist(), **values}


def test_rows_and_columns_of_tensorflow_servings_protocol(numbers: Server) -> None:
    expected = pytest.approx(probabilities(X), abs=1e-6)
    for instances in (X.tolist(), [{"x": row} for row in X.tolist()]):
        found = numbers.ask(PREDICT, {"instances": instances, "signature_name": "serving_default"}).json
        assert np.array(found["predictions"]) == expected
    for inputs in (X.tolist(), {"x": X.tolist()}):
        assert np.array(numbers.ask(PREDICT, {"inputs": inputs}).json["outputs"]) == expected
    assert numbers.ask("/v1/models/small/versions/1:predict", {"inputs": X.tolist()}).status == 200
    assert numbers.ask("/v1/models/small/versions/2:predict", {"inputs": X.tolist()}).status == 404
    assert numbers.ask("/v1/models/small").json["model_version_status"][0]["state"] == "AVAILABLE"
    signature = numbers.ask("/v1/models/small/metadata").json["metadata"]["signature_def"]["signature_def"]
    shape = signature["serving_default"]["inputs"]["x"]["tensor_shape"]["dim"]
    assert [each["size"] for each in shape] == ["-1", "4"]


def test_bytes_of_a_picture_are_decoded(images: Server) -> None:
    pixels = np.array([[10, 20], [30, 40]], np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    expected = pytest.approx(probabilities(pixels[np.newaxis]), abs=1e-6)
    instance = {"b64": base64.b64encode(file.getvalue()).decode()}
    for each in (instance, {"x": instance}):
        assert np.array(images.ask(PREDICT, {"instances": [each]}).json["predictions"]) == expected
    found = images.ask("/predict", file.getvalue(), {"Content-Type": "image/png"}).json["predictions"]
    assert list(found[0]["probabilities"].values()) == pytest.approx(sorted(probabilities(pixels[None])[0])[::-1])
    form = (
        b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n%b\r\n--B--\r\n' % file.getvalue()
    )
    again = images.ask("/predict", form, {"Content-Type": "multipart/form-data; boundary=B"}).json["predictions"]
    assert [each["example"] for each in again] == ["a.png"]
    assert again[0]["probabilities"] == found[0]["probabilities"]
    assert "an image" in images.ask("/predict", b"no picture").error
    file = io.BytesIO()
    Image.new("RGB", (4, 2)).save(file, "PNG")
    notes = images.ask("/predict", file.getvalue(), {"X-File-Name": "b.png"}).json["notes"]
    assert notes == ["b.png: converted to grayscale", "b.png: resized from 2x4 to 2x2"]


def test_numbers_that_are_none_are_read_in_json(numbers: Server) -> None:
    """``tritonclient`` writes them so."""
    body = json.dumps({"inputs": [tensor(np.full((1, 4), np.nan, np.float32))]})
    assert "NaN" in body
    assert numbers.ask(INFER, body.encode()).json["outputs"][0]["data"] == [None] * 3


@pytest.mark.parametrize("is_binary", [False, True])
def test_triton_client_over_http(numbers: Server, is_binary: bool) -> None:
    client = tritonclient.http.InferenceServerClient(numbers.url.removeprefix("http://"))
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("small", "1")
    assert client.get_server_metadata()["name"] == "accel-tui"
    assert client.get_model_metadata("small")["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
    given = tritonclient.http.InferInput("x", list(X.shape), "FP32")
    given.set_data_from_numpy(X, binary_data=is_binary)
    wanted = [tritonclient.http.InferRequestedOutput("probabilities", binary_data=is_binary)]
    found = client.infer("small", [given], outputs=wanted, request_id="seven")
    assert found.as_numpy("probabilities") == pytest.approx(probabilities(X), abs=1e-6)
    assert found.get_response()["id"] == "seven"
    with pytest.raises(
        tritonclient.utils.InferenceServerException, match="there is no model other; the model is small"
    ):
        client.infer("other", [given])


def test_triton_client_over_grpc(numbers: Server) -> None:
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{numbers.state['grpc_port']}")
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("small")
    assert client.get_model_metadata("small").outputs[0].shape == [-1, 3]
    given = tritonclient.grpc.InferInput("x", list(X.shape), "FP32")
    given.set_data_from_numpy(X)
    found = client.infer("small", [given], request_id="seven")
    assert found.as_numpy("probabilities") == pytest.approx(probabilities(X), abs=1e-6)
    assert found.get_response().id == "seven"
    short = tritonclient.grpc.InferInput("x", [1, 3], "FP32")
    short.set_data_from_numpy(X[:1, :3])
    with pytest.raises(tritonclient.utils.InferenceServerException, match="input x takes examples of float32 4, not 3"):
        client.infer("small", [short])


def test_the_only_model_is_found_without_its_name(numbers: Server) -> None:
    found = find_service(parse_url(f"grpc://127.0.0.1:{numbers.state['grpc_port']}"), ("other",))
    assert (found.model, found.version) == ("small", "1")
    told = served_run(parse_url(numbers.url))
    assert told
    assert told.name == "small"


def test_values_of_a_grpc_call_may_be_typed(numbers: Server) -> None:
    request = message("inference.ModelInferRequest")(model_name="small")
    given = request.inputs.add(name="x", datatype="FP32", shape=X.shape)
    given.contents.fp32_contents.extend(X.reshape(-1).tolist())
    with grpc.insecure_channel(f"127.0.0.1:{numbers.state['grpc_port']}") as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=message("inference.ModelInferRequest").SerializeToString,
            response_deserializer=message("inference.ModelInferResponse").FromString,
        )
        found = call(request, timeout=120)
    assert np.frombuffer(found.raw_output_contents[0], np.float32) == pytest.approx(probabilities(X).reshape(-1))


def test_messages_are_those_of_the_protocol() -> None:
    others = service_pb2.DESCRIPTOR.pool
    for name in (
        "ModelInferRequest",
        "ModelInferResponse",
        "ModelMetadataResponse",
        "InferParameter",
        "InferTensorContents",
    ):
        theirs = others.FindMessageTypeByName(f"inference.{name}").fields_by_name
        ours = POOL.FindMessageTypeByName(f"inference.{name}").fields_by_name
        for field, own in ours.items():
            their = theirs[field]
            assert (own.number, own.type, own.is_repeated) == (their.number, their.type, their.is_repeated), field


def test_health_and_reflection_over_grpc(numbers: Server) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{numbers.state['grpc_port']}") as channel:
        for service in ("", "inference.GRPCInferenceService"):
            asked = health_pb2.HealthCheckRequest(service=service)
            found = health_pb2_grpc.HealthStub(channel).Check(asked, timeout=120)
            assert found.status == health_pb2.HealthCheckResponse.SERVING
        database = ProtoReflectionDescriptorDatabase(channel)
        assert {"inference.GRPCInferenceService", "grpc.health.v1.Health"} <= set(database.get_services())
        assert database.FindFileContainingSymbol("inference.ModelInferRequest").package == "inference"


def test_health_over_grpc_follows_the_model() -> None:
    serving, not_serving = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
    asked = health_pb2.HealthCheckRequest(service="inference.GRPCInferenceService")

    async def ask() -> None:
        state = ServingState(Limits(), ServerAccess(), ServerMetrics())
        server = await GrpcServer.start(state, "127.0.0.1", 0, None)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            watched = stub.Watch(asked, timeout=120)

            async def told() -> list[int]:
                return [(await stub.Check(asked, timeout=120)).status, (await watched.read()).status]

            assert await told() == [not_serving] * 2
            state.model = SimpleNamespace(is_ready=True)  # type: ignore[assignment]
            assert await told() == [serving] * 2
            state.model = SimpleNamespace(is_ready=False)  # type: ignore[assignment]
            assert await told() == [not_serving] * 2
            state.model = SimpleNamespace(is_ready=True)  # type: ignore[assignment]
            assert await told() == [serving] * 2
            state.is_draining = True
            assert await told() == [not_serving] * 2
        await server.stop(0)

    asyncio.run(ask())


def test_outputs_are_chosen_by_name_and_form(numbers: Server) -> None:
    body = {"inputs": [tensor()], "outputs": [{"name": "probabilities", "parameters": {"binary_data": True}}]}
    found = numbers.ask(INFER, body)
    length = int(found.headers["Inference-Header-Content-Length"])
    assert json.loads(found.content[:length])["outputs"][0]["parameters"] == {"binary_data_size": 36}
    assert np.frombuffer(found.content[length:], "<f4").reshape(3, 3) == pytest.approx(probabilities(X), abs=1e-6)
    nested = numbers.ask(INFER, {"inputs": [tensor(data=X.tolist())]}).json["outputs"][0]
    assert nested["shape"] == [3, 3]
    assert (
        "there is no output 'y'; the outputs are probabilities"
        in numbers.ask(INFER, {**body, "outputs": [{"name": "y"}]}).error
    )


def test_bytes_after_the_json_are_checked(numbers: Server) -> None:
    def ask(size: Any, content: bytes, shape: tuple[int, ...] = (1, 4)) -> str:
        given = {"name": "x", "shape": shape, "datatype": "FP32", "parameters": {"binary_data_size": size}}
        head = json.dumps({"inputs": [given]}).encode()
        headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
        return numbers.ask(INFER, head + content, headers).json.get("error", "")

    whole = struct.pack("<4f", 1, 2, 3, 4)
    assert ask(16, whole) == ""
    assert ask(17, whole) == "input x: binary_data_size is 17, and 16 bytes follow"
    assert ask(12, whole) == "input x has 3 values, but its shape [1, 4] needs 4"
    assert ask(16, whole + b"x") == "1 bytes of binary data belong to no input"
    assert ask("16", whole) == "input x: binary_data_size is '16', and 16 bytes follow"
    assert ask(15, whole[:15]) == "input x: 15 bytes are not a multiple of 4"


def test_what_describes_the_server(numbers: Server) -> None:
    assert numbers.ask("/v2").json["extensions"] == ["binary_tensor_data"]
    found = numbers.ask("/openapi.json").json
    assert set(found["paths"]) >= {PREDICT, INFER, "/predict", "/readyz"}
    about = numbers.ask("/about").json
    assert (about["name"], about["takes"]) == ("small", "arrays")
    page = numbers.ask("/")
    assert "page.js" in page.content.decode()
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    assert numbers.ask("/page.js").headers["Content-Type"].startswith("text/javascript")
    assert numbers.ask("/nothing").status == 404
    assert numbers.ask(INFER).status == 405


def test_requests_are_counted(start: Any, folders: Any) -> None:
    server = start(folders / "numbers")
    server.ask(PREDICT, {"instances": X.tolist()})
    server.ask(PREDICT, {"instances": [1]})
    lines = server.ask("/metrics").content.decode().splitlines()
    assert 'model_server_requests_total{code="200",protocol="v1"} 1.0' in lines
    assert 'model_server_requests_total{code="400",protocol="v1"} 1.0' in lines
    assert "model_server_examples_total 3.0" in lines
    assert "model_server_ready 1.0" in lines
    assert server.metric("model_server_backend_resident_bytes") > 1e6
    assert 'model_server_info{format="onnx",name="small",run="abcd-small",version="1"} 1.0' in lines
    assert server.stop() == 0
    assert not server.state_file.exists()


def test_a_connection_serves_many_requests(numbers: Server) -> None:
    """Raw bytes, as of ``curl``, several requests at once on a connection."""
    body = json.dumps({"instances": X[:1].tolist()}).encode()
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", numbers.state["port"]), 30) as link:
        link.sendall((head + body) * 3)
        received = b""
        while received.count(b"]]}") < 3:
            received += link.recv(65536)
    assert received.count(b"HTTP/1.1 200 OK") == 3


@pytest.mark.campaign
def test_kserves_client(numbers: Server) -> None:
    """``KSERVE=VENV/bin/python`` names an environment with kserve, which has libraries that accel-tui cannot use."""
    python = os.environ.get("KSERVE")
    if not python:
        pytest.skip("KSERVE names no Python with kserve")
    script = Path(__file__).with_name("kserve_client.py")
    command = [python, script, str(numbers.state["port"]), str(numbers.state["grpc_port"]), str(numbers.folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert float(done.stdout.splitlines()[-1]) < 1e-6
