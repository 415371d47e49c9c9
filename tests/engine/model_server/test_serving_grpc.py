"""TensorFlow Serving's protocol over gRPC, as its own stubs and TensorFlow's own tensors have it."""

import base64
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_engine.data.structure import ArraySpec
from accel_engine.model_server.grpc_messages import message
from accel_engine.model_server.protocols import TENSORFLOW_TYPES
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.serving_grpc import to_array, to_tensor
from accel_engine.protobuf import Message
from accel_engine.service_client.find_service import find_service, parse_url

from .conftest import Server, Start, probabilities

X = np.array([[0, 1, 2, 3], [4, 3, 2, 1], [0, 0, 0, 0]], np.float32)

RECORDED = base64.b64decode(
    "ChwKBXNtYWxsEgIIARoPc2VydmluZ19kZWZhdWx0EkMKAXgSPggBEggSAggDEgIIBCIwAAAAAAAAgD8AAABAAABAQAAAgEAAAEBAAAAAQAAAgD8AAAAA"
    "AAAAAAAAAAAAAAAAGg1wcm9iYWJpbGl0aWVz"
)
"""The request for ``X`` that tensorflow-serving-api 2.21 and ``tf.make_tensor_proto`` make: version 1, one output."""


@pytest.fixture
def channel(numbers: Server) -> Any:
    with grpc.insecure_channel(f"127.0.0.1:{numbers.state['grpc_port']}") as channel:
        yield channel


def call(channel: Any, method: str, request: bytes) -> Message:
    return Message(channel.unary_unary(f"/tensorflow.serving.{method}")(request, timeout=120))


def test_a_request_of_its_own_stubs_is_answered(channel: Any) -> None:
    (entry,) = call(channel, "PredictionService/Predict", RECORDED).messages(1)
    tensor = entry.message(2)
    assert (entry.text(1), tensor.integer(1)) == ("probabilities", 1)
    assert [each.integer(1) for each in tensor.message(2).messages(2)] == [3, 3]
    found = np.frombuffer(tensor.data(5)[0], "<f4")
    np.testing.assert_allclose(found.reshape(3, 3), probabilities(X), atol=1e-6)


@pytest.mark.parametrize(
    ("method", "fields", "error"),
    [
        ("PredictionService/Predict", {}, "INVALID_ARGUMENT: model_spec has no name"),
        ("PredictionService/Predict", {"name": "other"}, "NOT_FOUND: there is no model other; the model is small"),
        ("PredictionService/Predict", {"name": "small", "version": {"value": 2}}, "NOT_FOUND: there is no version 2"),
        ("PredictionService/Predict", {"name": "small", "version_label": "new"}, "NOT_FOUND: there is no label 'new'"),
        ("PredictionService/Predict", {"name": "small", "signature_name": "a"}, "INVALID_ARGUMENT: the model has the"),
        ("PredictionService/Predict", {"name": "small"}, "INVALID_ARGUMENT: input x is missing"),
        ("PredictionService/GetModelMetadata", {"name": "small"}, "INVALID_ARGUMENT: metadata_field is signature_def"),
        ("PredictionService/Classify", {"name": "small"}, "UNIMPLEMENTED"),
        ("ModelService/HandleReloadConfigRequest", {"name": "small"}, "UNIMPLEMENTED"),
        ("ModelService/GetModelStatus", {"name": "other"}, "NOT_FOUND: there is no model other"),
    ],
)
def test_wrong_requests_are_refused_with_the_reason(
    channel: Any, method: str, fields: dict[str, Any], error: str
) -> None:
    request = message("tensorflow.serving.PredictRequest")(model_spec=fields).SerializeToString()
    with pytest.raises(grpc.RpcError) as raised:
        call(channel, method, request)
    assert error in f"{raised.value.code().name}: {raised.value.details()}"


def test_a_check_speaks_it_where_it_is_asked_to(numbers: Server) -> None:
    url = parse_url(f"grpc://127.0.0.1:{numbers.state['grpc_port']}/small")
    service = find_service(url, (), "grpc-v1")
    assert (service.name, service.version, str(service.inputs["x"])) == ("v1 gRPC", "1", "float32 4")
    assert service.platform == "onnxruntime_onnx"  # as over the other protocol, so that its tolerance is known
    np.testing.assert_allclose(service.run({"x": X})["probabilities"], probabilities(X), atol=1e-6)


def test_a_queue_of_few_examples_gets_smaller_requests(start: Start, folders: Path) -> None:
    server = start(folders / "numbers", "--grpc-port", "0", "--max-queue", "16")
    url = parse_url(f"grpc://127.0.0.1:{server.state['grpc_port']}/small")
    for protocol in ("grpc", "grpc-v1"):
        service = find_service(url, (), protocol)
        found = service.run({"x": np.repeat(X, 9, axis=0)})["probabilities"]
        np.testing.assert_allclose(found, probabilities(np.repeat(X, 9, axis=0)), atol=1e-6)
        assert service.largest == 16


KINDS = ("bool", "uint8", "int8", "uint16", "int16", "int32", "int64", "uint32", "uint64", "float16", "float32")


@pytest.mark.parametrize("dtype", [*KINDS, "float64"])
def test_tensors_keep_their_values(dtype: str) -> None:
    array, spec = np.array([[0, 1], [1, 1]]).astype(dtype), ArraySpec((2,), dtype)
    tensor = to_tensor(array, spec)
    np.testing.assert_array_equal(to_array("x", tensor, spec, 1000), array)
    raw = message("tensorflow.TensorProto")(
        dtype=tensor.dtype, tensor_shape=tensor.tensor_shape, tensor_content=array.tobytes()
    )
    np.testing.assert_array_equal(to_array("x", raw, spec, 1000), array)


def tensor(dtype: str, *shape: int, **values: Any) -> Any:
    dims = {"dim": [{"size": side} for side in shape]}
    return message("tensorflow.TensorProto")(dtype=dtype, tensor_shape=dims, **values)


def test_few_values_are_filled_up() -> None:
    spec = ArraySpec((2,), "float32")
    found = to_array("x", tensor("DT_FLOAT", 2, 2, float_val=[1, 7]), spec, 1000)
    np.testing.assert_array_equal(found, [[1, 7], [7, 7]])
    np.testing.assert_array_equal(to_array("x", tensor("DT_FLOAT", 1, 2), spec, 1000), [[0, 0]])
    words = to_array("t", tensor("DT_STRING", 2, 1, string_val=["é".encode()]), ArraySpec((1,), "string"), 1000)
    assert words.tolist() == [["é"], ["é"]]


@pytest.mark.parametrize(
    ("tensor_given", "dtype", "error"),
    [
        (tensor("DT_DOUBLE", 1, 2, double_val=[1, 2]), "float32", "must have the type DT_FLOAT, not DT_DOUBLE"),
        (tensor("DT_FLOAT", float_val=[1]), "float32", "shape must be a list of whole numbers"),
        (tensor("DT_FLOAT", -1, 2, float_val=[1]), "float32", "shape must be a list of whole numbers"),
        (tensor("DT_FLOAT", 1, 2, float_val=[1, 2, 3]), "float32", r"has 3 values, but its shape \[1, 2\] needs 2"),
        (tensor("DT_FLOAT", 1, 2, tensor_content=b"abc"), "float32", "3 bytes are not a multiple of 4"),
        (tensor("DT_FLOAT", 1 << 30, 2, float_val=[1]), "float32", "is larger than 1,000 bytes"),
        (tensor("DT_UINT8", 1, 1, int_val=[256]), "uint8", "takes whole numbers from 0 to 255, not 256"),
        (tensor("DT_STRING", 1, 1, string_val=[b"\xff"]), "string", "takes texts in UTF-8"),
        (tensor("DT_STRING", 1, 1, tensor_content=b"a"), "string", "takes texts in string_val"),
        (tensor("DT_STRING", 1 << 30, 1, string_val=[b"a"]), "string", "is larger than 1,000 bytes"),
    ],
)
def test_what_is_no_tensor_of_an_input_is_refused(tensor_given: Any, dtype: str, error: str) -> None:
    with pytest.raises(RequestError, match=error):
        to_array("x", tensor_given, ArraySpec((2,), dtype), 1000)


@settings(max_examples=50, deadline=None)
@given(
    dtype=st.sampled_from([*KINDS, "float64", "string"]),
    number=st.none() | st.integers(0, 30),
    shape=st.lists(st.integers(-2, 3) | st.integers(0, 1 << 40), max_size=4).map(
        lambda sides: [*sides[:1], 2, *sides[2:]]
    ),
    values=st.lists(st.integers(0, 300), max_size=5),
    content=st.binary(max_size=12),
)
def test_any_tensor_is_an_array_or_refused(
    dtype: str, number: int | None, shape: list[int], values: list[int], content: bytes
) -> None:
    tensor = message("tensorflow.TensorProto")(
        dtype=TENSORFLOW_TYPES[dtype] if number is None else number,
        tensor_shape={"dim": [{"size": side} for side in shape]},
        **dict.fromkeys(("int_val", "half_val", "float_val", "int64_val", "uint64_val", "uint32_val"), values),
        string_val=[content] * len(values),
        tensor_content=content if len(values) % 2 else b"",
    )
    try:
        found = to_array("x", tensor, ArraySpec((2,), dtype), 1000)
    except RequestError:
        return
    assert list(found.shape) == shape
    assert found.dtype == (object if dtype == "string" else dtype)


def test_its_own_stubs_understand_each_answer(channel: Any) -> None:
    stubs = pytest.importorskip(
        "tensorflow_serving.apis.prediction_service_pb2_grpc", reason="`make container` installs tensorflow-serving-api"
    )
    import tensorflow as tf
    from tensorflow_serving.apis import (
        get_model_metadata_pb2,
        get_model_status_pb2,
        model_service_pb2_grpc,
        predict_pb2,
    )

    stub = stubs.PredictionServiceStub(channel)
    request = predict_pb2.PredictRequest(output_filter=["probabilities"])
    request.model_spec.name, request.model_spec.version.value = "small", 1
    for x in (X, np.ones((3, 4), np.float32)):
        for proto in (tf.make_tensor_proto(x), tf.compat.v1.make_tensor_proto(x.tolist(), tf.float32)):
            request.inputs["x"].CopyFrom(proto)
            answer = stub.Predict(request, timeout=120)
            found = tf.make_ndarray(answer.outputs["probabilities"])
            np.testing.assert_allclose(found, probabilities(x), atol=1e-6)
    assert (answer.model_spec.name, answer.model_spec.version.value) == ("small", 1)

    asked = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    asked.model_spec.name = "small"
    described = get_model_metadata_pb2.SignatureDefMap()
    assert stub.GetModelMetadata(asked, timeout=120).metadata["signature_def"].Unpack(described)
    signature = described.signature_def["serving_default"]
    assert [each.size for each in signature.inputs["x"].tensor_shape.dim] == [-1, 4]
    assert signature.outputs["probabilities"].dtype == tf.float32.as_datatype_enum

    wanted = get_model_status_pb2.GetModelStatusRequest()
    wanted.model_spec.name = "small"
    (status,) = (
        model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(wanted, timeout=120).model_version_status
    )
    assert status.version == 1
    assert status.state == get_model_status_pb2.ModelVersionStatus.AVAILABLE
    assert status.status.error_code == 0
