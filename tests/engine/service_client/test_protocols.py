"""Clients of services, against small servers of several protocols in this process."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import grpc
import numpy as np
import pytest

from accel_engine.errors import ModelError, UsageError
from accel_engine.inference.candidate import Candidate
from accel_engine.model_server.protocols import to_bytes
from accel_engine.protobuf import Message, bytes_field, text_field, varint
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.requests.check_service import CheckOptions
from accel_engine.service_client.bench import check_bench_options, find_target, measure_service
from accel_engine.service_client.find_service import ServiceUrl, find_service, parse_url
from accel_engine.service_client.rest_v2 import RestV2
from accel_engine.service_client.tensor_values import (
    numpy_name,
    tensor_from_bytes,
    tensor_from_json,
    tensor_from_values,
    tensor_to_json,
)
from accel_engine.service_client.transport import (
    HttpAnswer,
    ServiceError,
    Transport,
    UnreachableError,
    _refusal,
    patiently,
)

TEXTS = np.array([["a"], ["é"], [""]], object)
NUMBERS = np.array([[0.1, np.nan], [1.5, -2.0], [3e-8, 7.0]], np.float32)


class Stand(BaseHTTPRequestHandler):
    """Gives each number twice, and each text twice in a row; what it speaks is in its class."""

    protocol_version = "HTTP/1.1"
    speaks: tuple[str, ...] = ("v1", "v2", "binary")
    takes_nan = True
    busy = 0
    most = 1 << 20
    bodies: list[bytes]

    def log_message(self, *_: Any) -> None: ...

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        tensors = [
            {"name": "x", "datatype": "FP32", "shape": [-1, 2]},
            {"name": "t", "datatype": "BYTES", "shape": [-1, 1]},
        ]
        found: Any = None
        if "v2" in self.speaks and self.path == "/v2":
            extensions = ["binary_tensor_data"] if "binary" in self.speaks else []
            found = {"name": "stand", "version": "1", "extensions": extensions}
        elif "v2" in self.speaks and self.path == "/v2/models/m":
            found = {"name": "m", "versions": ["3"], "platform": "onnx", "inputs": tensors, "outputs": tensors}
        elif "v1" in self.speaks and self.path == "/v1/models/m/metadata":
            signature = {
                "x": {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "-1"}, {"size": "2"}]}},
                "t": {"dtype": "DT_STRING", "tensor_shape": {"dim": [{"size": "-1"}, {"size": "1"}]}},
            }
            served = {"serving_default": {"inputs": signature, "outputs": signature}}
            found = {"model_spec": {"version": "3"}, "metadata": {"signature_def": {"signature_def": served}}}
        self.answer(200 if found else 404, json.dumps(found or {"error": "nothing here"}).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = type(self)
        kind.bodies.append(body)
        if kind.busy:
            kind.busy -= 1
            self.answer(429, b'{"error": "full"}', Retry_After="0")
        elif self.path == "/v2/repository/index":
            self.close_connection = True  # without an answer, as a server does that fails at what it does not know
        elif len(body) > self.most:
            self.answer(413, b'{"error": "send fewer"}')
        elif not self.takes_nan and b"NaN" in body:
            self.answer(400, b'{"error": "no JSON"}')
        elif self.path == "/v1/models/m:predict":
            inputs = json.loads(body)["inputs"]
            numbers = [[None if value is None else 2 * value for value in row] for row in inputs["x"]]
            texts = [[{"b64": "YQ=="} if text == "a" else text for text in row] for row in inputs["t"]]
            self.answer(200, json.dumps({"outputs": {"x": numbers, "t": texts}}).encode())
        elif self.path == "/v2/models/m/infer":
            self._infer(body)
        else:
            self.answer(404, b"<html>no</html>")

    def _infer(self, body: bytes) -> None:
        length = int(self.headers.get("Inference-Header-Content-Length", len(body)))
        asked, at, outputs, raw = json.loads(body[:length]), length, [], b""
        for tensor in asked["inputs"]:
            size = tensor.get("parameters", {}).get("binary_data_size")
            given = {"name": tensor["name"], "datatype": tensor["datatype"], "shape": tensor["shape"]}
            if size is None:
                data = tensor["data"]
                array = tensor_from_json(
                    data, "string" if tensor["datatype"] == "BYTES" else "float32", tensor["shape"]
                )
                outputs.append({**given, "data": tensor_to_json(array if array.dtype == object else 2 * array)})
            else:
                dtype = numpy_name(tensor["datatype"])
                array, at = tensor_from_bytes(body[at : at + size], dtype, tensor["shape"]), at + size
                part = to_bytes(array if array.dtype == object else 2 * array, dtype)
                raw += part
                outputs.append({**given, "parameters": {"binary_data_size": len(part)}})
        head = json.dumps({"outputs": outputs}).encode()
        self.answer(200, head + raw, **({"Inference_Header_Content_Length": str(len(head))} if raw else {}))


@pytest.fixture
def stand() -> Iterator[type[Stand]]:
    kind = type("OneStand", (Stand,), {"bodies": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    kind.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield kind
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_that_wants_a_token_is_told_with_the_option() -> None:
    answer = HttpAnswer(401, {}, b"")
    told = _refusal("/v2", answer, Transport("http://h").cure)
    assert told == "/v2: 401 Unauthorized (--token-file FILE has the token)"


@pytest.mark.parametrize(
    ("speaks", "protocol", "named"),
    [
        (("v1", "v2", "binary"), "auto", "v2 REST, binary"),
        (("v1", "v2"), "auto", "v2 REST"),
        (("v1",), "auto", "v1 REST"),
        (("v1", "v2", "binary"), "v2", "v2 REST"),
        (("v1", "v2", "binary"), "v1", "v1 REST"),
    ],
)
def test_numbers_and_texts_come_back_over_each_protocol(
    stand: Any, speaks: tuple[str, ...], protocol: str, named: str
) -> None:
    stand.speaks = speaks
    service = find_service(parse_url(stand.url), ("other", "m"), protocol)
    assert (service.name, service.model, service.version) == (named, "m", "3")
    assert {name: str(spec) for name, spec in service.inputs.items()} == {"x": "float32 2", "t": "string 1"}
    found = service.run({"x": NUMBERS, "t": TEXTS})
    np.testing.assert_array_equal(found["x"], 2 * NUMBERS)
    assert [text.decode() if isinstance(text, bytes) else text for text in found["t"].ravel()] == ["a", "é", ""]


def test_a_server_that_takes_no_nan_gets_null(stand: Any) -> None:
    stand.takes_nan, stand.speaks = False, ("v1",)
    service = find_service(parse_url(f"{stand.url}/v1/models/m"), ())
    np.testing.assert_array_equal(service.run({"x": NUMBERS, "t": TEXTS})["x"], 2 * NUMBERS)
    assert [b"NaN" in body for body in stand.bodies] == [True, False]
    assert b"null" in service.prepare({"x": NUMBERS, "t": TEXTS})


def test_several_threads_find_at_once_that_a_server_takes_no_nan(stand: Any) -> None:
    stand.takes_nan, stand.speaks = False, ("v1",)
    service = find_service(parse_url(f"{stand.url}/v1/models/m"), ())
    both = Barrier(2)
    send = service.send

    def send_together(request: Any) -> Any:
        if b"NaN" in request:
            both.wait(30)
        return send(request)

    service.send = send_together
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: service.run({"x": NUMBERS, "t": TEXTS})["x"], range(2)))
    np.testing.assert_array_equal(found, [2 * NUMBERS] * 2)


def test_many_examples_are_several_requests_and_a_busy_server_is_asked_again(stand: Any) -> None:
    service = RestV2(Transport(stand.url), "m")
    stand.busy = 2
    x = np.arange(160, dtype=np.float32).reshape(80, 2)
    found = service.run({"x": x, "t": np.full((80, 1), "b", object)})
    np.testing.assert_array_equal(found["x"], 2 * x)
    assert len(stand.bodies) == 2 + 3
    stand.busy = 100
    with pytest.raises(ServiceError, match=r"429 Too Many Requests: full"):
        patiently(service.send, service.prepare({"x": x[:1], "t": TEXTS[:1]}))


def test_a_server_that_takes_only_small_requests_gets_smaller_ones(stand: Any) -> None:
    service = RestV2(Transport(stand.url), "m")
    x, stand.most = np.arange(80, dtype=np.float32).reshape(40, 2), 500
    inputs = {"x": x, "t": np.full((40, 1), "b", object)}
    np.testing.assert_array_equal(service.run(inputs)["x"], 2 * x)
    assert service.largest < 32
    stand.most = 1
    with pytest.raises(ServiceError, match="413 Request Entity Too Large: send fewer"):
        service.run(inputs)
    assert service.largest == 1


def test_what_is_not_there_is_told(stand: Any) -> None:
    with pytest.raises(ServiceError, match="has no model of the name a or b: give its name in the URL, such as"):
        find_service(parse_url(stand.url), ("a", "b"))
    with pytest.raises(ServiceError, match="404 Not Found: nothing here"):
        find_service(parse_url(f"{stand.url}/v2/models/n"), ("m",))
    with pytest.raises(UnreachableError, match="cannot be reached"):
        find_service(parse_url("http://127.0.0.1:9"), ("m",))
    with pytest.raises(UsageError, match="gRPC has another port"):
        find_service(parse_url(stand.url), ("m",), "grpc")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("127.0.0.1:8501", ("http", "127.0.0.1:8501", "", "", "")),
        ("http://h/v2/models/a%20b/versions/3/infer", ("http", "h", "v2", "a b", "3")),
        ("https://h:1/v1/models/m:predict", ("https", "h:1", "v1", "m", "")),
        ("grpc://h:9000/m", ("grpc", "h:9000", "grpc", "m", "")),
    ],
)
def test_a_url_tells_server_protocol_and_model(text: str, parts: tuple[str, ...]) -> None:
    assert parse_url(text) == ServiceUrl(*parts)


@pytest.mark.parametrize(
    "text", ["", "ftp://h", "http://", "http://h:x", "http://h/v3/models/m", "grpc://h", "http://h?q=1"]
)
def test_what_is_no_url_is_told(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a URL|has no port"):
        parse_url(text)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64"])
def test_tensors_come_back_from_bytes_and_json(dtype: str) -> None:
    array = tensor_from_bytes(to_bytes(np.array([[0, 1, 1]]), dtype), dtype, (1, 3))
    np.testing.assert_array_equal(array, [[0, 1, 1]])
    np.testing.assert_array_equal(tensor_from_json(tensor_to_json(array), array.dtype.name, (1, 3)), array)


@pytest.mark.parametrize(("data", "shape"), [(b"\1\0\0\0", (1,)), (b"\1\0\0\0a", (2,)), (b"abc", (1,))])
def test_bytes_that_are_no_texts_are_told(data: bytes, shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="is not a tensor of the type string"):
        tensor_from_bytes(data, "string", shape)


@pytest.mark.parametrize(
    ("values", "dtype"), [([1, 2**63 + 1], "uint64"), ([-1, 2**62 + 1], "int64"), ([0.5, 2.0], "float32")]
)
def test_tensors_come_from_the_values_of_messages(values: list[Any], dtype: str) -> None:
    array = tensor_from_values(values, dtype, (2, 1))
    assert (array.dtype.name, array.reshape(-1).tolist()) == (dtype, values)


@pytest.mark.parametrize(("values", "dtype"), [([1, 300], "uint8"), ([1], "int32"), ([b"a", b"b", b"c"], "string")])
def test_values_of_messages_that_are_no_tensor_are_told(values: list[Any], dtype: str) -> None:
    with pytest.raises(ModelError, match=f"is not a tensor of the type {dtype}"):
        tensor_from_values(values, dtype, (2,))


class _Inference(grpc.GenericRpcHandler):
    """Gives each number twice; without raw bytes if it has none."""

    def service(self, details: Any) -> Any:
        method = details.method.rpartition("/")[2]
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: getattr(self, method.lower())(request, context)
        )

    def servermetadata(self, _: bytes, __: Any) -> bytes:
        return text_field(1, "stand") + text_field(2, "1")

    def modelmetadata(self, request: bytes, context: Any) -> bytes:
        if Message(request).text(1) != "m":
            context.abort(grpc.StatusCode.NOT_FOUND, "no such model")
        minus_one = varint((1 << 64) - 1)
        tensor = text_field(1, "x") + text_field(2, "FP32") + bytes_field(3, minus_one + varint(2))
        return text_field(1, "m") + text_field(2, "3") + bytes_field(4, tensor) + bytes_field(5, tensor)

    def modelinfer(self, request: bytes, _: Any) -> bytes:
        message = Message(request)
        x = np.frombuffer(message.data(7)[0], "<f4") * 2
        tensor = message.messages(5)[0]
        shape = b"".join(map(varint, tensor.integers(3)))
        output = text_field(1, "x") + text_field(2, "FP32") + bytes_field(3, shape)
        if len(x) > 2:
            return bytes_field(5, output) + bytes_field(6, x.tobytes())
        return bytes_field(5, output + bytes_field(5, bytes_field(6, x.tobytes())))


def test_numbers_come_back_over_grpc() -> None:
    server = grpc.server(ThreadPoolExecutor(1), handlers=(_Inference(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        service = find_service(parse_url(f"grpc://127.0.0.1:{port}"), ("other", "m"))
        assert (service.name, service.version, service.server) == ("v2 gRPC", "3", "stand 1")
        for x in (NUMBERS, NUMBERS[1:2]):
            np.testing.assert_array_equal(service.run({"x": x})["x"], 2 * x)
        with pytest.raises(ServiceError, match="no such model"):
            find_service(parse_url(f"grpc://127.0.0.1:{port}/n"), ())
    finally:
        server.stop(None)
    with pytest.raises(UnreachableError, match="cannot be reached"):
        find_service(parse_url("grpc://127.0.0.1:9/m"), ())


def test_a_grpc_server_that_takes_only_small_requests_gets_smaller_ones() -> None:
    limit = [("grpc.max_receive_message_length", 100)]
    server = grpc.server(ThreadPoolExecutor(1), handlers=(_Inference(),), options=limit)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        service = find_service(parse_url(f"grpc://127.0.0.1:{port}"), ("m",))
        x = np.arange(80, dtype=np.float32).reshape(40, 2)
        np.testing.assert_array_equal(service.run({"x": x})["x"], 2 * x)
        assert service.largest < 32
    finally:
        server.stop(None)


def bench(url: str, tmp_path: Path, **options: Any) -> list[Candidate]:
    wanted = BenchOptions(**{"seconds": 0.1, "batch_sizes": (1, 4), **options})
    np.savez(tmp_path / "examples.npz", **{"inputs/x": NUMBERS, "inputs/t": TEXTS.astype("U")})
    return list(measure_service(find_target(url, wanted, CheckOptions()), wanted, 2))


@pytest.mark.parametrize("scenario", ["single-stream", "multi-stream", "offline", "server"])
def test_a_service_is_measured_in_each_scenario(stand: Any, tmp_path: Path, scenario: str) -> None:
    options = {"target_latency": 30.0, "batch_sizes": None} if scenario == "server" else {}
    options |= {"batch_sizes": None} if scenario == "single-stream" else {}
    found = bench(f"{stand.url}/v2/models/m", tmp_path, scenario=scenario, data=str(tmp_path), **options)
    assert [each.batch_size for each in found] == ([1, 4] if scenario in ("multi-stream", "offline") else [1])
    assert all(each.throughput > 0 and not each.problem for each in found)
    assert all(bool(each.percentiles) == (scenario != "offline") for each in found)
    assert found[0].title == f"m on {stand.url}, v2 REST, binary"


def test_a_service_gets_random_examples_and_what_it_refuses_is_told(stand: Any, tmp_path: Path) -> None:
    stand.speaks = ("v1",)
    (found,) = bench(f"{stand.url}/v1/models/m", tmp_path, batch_sizes=(3,))
    assert found.format == "v1 REST"
    assert np.shape(json.loads(stand.bodies[0])["inputs"]["x"]) == (3, 2)
    stand.busy = 1  # asked again, and measured all the same
    assert not bench(f"{stand.url}/v1/models/m", tmp_path, batch_sizes=(3,))[0].problem
    stand.busy = 1000
    refused = bench(f"{stand.url}/v1/models/m", tmp_path)
    assert [each.problem for each in refused] == ["/v1/models/m:predict: 429 Too Many Requests: full"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"xla": "on"}, "--xla is for models that are measured here"),
        ({"precisions": ("float32",)}, "--precision is for models"),
        ({"scenario": "server", "target_latency": 1.0, "batch_sizes": (2,)}, "leave out --batch-sizes"),
    ],
)
def test_options_of_models_do_not_go_with_a_service(options: Any, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        check_bench_options(BenchOptions(**options))


def test_examples_that_are_not_the_models_are_told(stand: Any, tmp_path: Path) -> None:
    (tmp_path / "no.npz").write_text("none")
    np.savez(tmp_path / "other.npz", y=NUMBERS)
    for name, error in (
        ("no.npz", "is not an .npz file"),
        ("other.npz", "takes the inputs t, x, not y"),
        ("a", "cannot"),
    ):
        with pytest.raises(UsageError, match=error):
            bench(f"{stand.url}/v2/models/m", tmp_path, data=str(tmp_path / name))
