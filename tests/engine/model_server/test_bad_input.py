"""A request that is wrong gets a status and a message that name the input and what would be right; nothing worse."""

import base64
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pyarrow.parquet import write_table

from accel_engine.data.data_options import ColumnFormat
from accel_engine.data.structure import ArraySpec
from accel_engine.model_server import grpc_server, open_inference, rest_v1
from accel_engine.model_server.application import parsed
from accel_engine.model_server.files import read_file
from accel_engine.model_server.grpc_messages import message
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.service import ServedModelFile, Service, Tensor, UploadForm, read_service
from accel_engine.model_server.tensors import array_of

from .conftest import Server, Start

PREDICT, INFER = "/v1/models/small:predict", "/v2/models/small/infer"


@pytest.mark.parametrize(
    ("values", "spec", "problem"),
    [
        ([[1, 2], [3]], "float32 2", "lists of different lengths"),
        ([[1, "2"]], "float32 2", "takes numbers (float32 2), not texts"),
        ([["1", "2"]], "float32 2", "takes numbers (float32 2), not texts"),
        ([[1, {}]], "float32 2", "takes numbers (float32 2); a missing one is null"),
        ({"a": 1}, "float32 2", "takes numbers (float32 2), not an object"),
        ([[1, 2, 3]], "float32 2", "takes examples of float32 2, not 3"),
        (1, "float32 2", "takes a list of examples of float32 2, not a single value"),
        ([[1e39, 0]], "float32 2", "numbers that are too large for float32"),
        ([[256]], "uint8 1", "takes whole numbers from 0 to 255, not 256"),
        ([[-1]], "uint8 1", "takes whole numbers from 0 to 255, not -1"),
        ([[0.5]], "uint8 1", "takes whole numbers from 0 to 255, not fractions"),
        ([[float("nan")]], "uint8 1", "takes whole numbers from 0 to 255, not NaN or infinity"),
        ([[None]], "int64 1", "whole numbers (int64 1), none of which may be missing"),
        ([[10**30]], "int64 1", "takes whole numbers from"),
        ([1], "string", "takes texts, not numbers; a missing one is null"),
        ([["a"], ["b", "c"]], "string 1", "lists of different lengths"),
        ([{"b64": "%"}], "string", "b64 is not in base64"),
        ([{"b64": "/w=="}], "string", "takes texts in UTF-8"),
        ([["good"]], "string", "takes a single value (string) for each example, not a list"),
        (["\ud800"], "string", "takes texts in Unicode; '\\ud800' has half of a character"),
        (["a" * (1 << 20)] + [1] * (1 << 20), "float32", "takes numbers (float32), not texts"),
    ],
)
def test_values_that_do_not_fit(values: Any, spec: str, problem: str) -> None:
    dtype, _, sides = spec.partition(" ")
    with pytest.raises(RequestError) as caught:
        array_of("x", values, ArraySpec(tuple(map(int, sides.split())), dtype))
    assert problem in str(caught.value)
    assert str(caught.value).startswith("input x ") or "input x:" in str(caught.value)


def test_a_body_may_have_what_is_not_a_number() -> None:
    """As clients of both protocols write it, although JSON has no word for it."""
    assert repr(parsed(b'{"inputs": [NaN, -Infinity, 1]}')) == "{'inputs': [nan, -inf, 1]}"
    for wrong in (b'{"inputs": [NaN,}', b"[" * 100_000 + b"NaN"):
        with pytest.raises(RequestError, match="not valid JSON"):
            parsed(wrong)
    assert np.isnan(array_of("x", [[float("nan")]], ArraySpec((1,), "float32"))).all()
    with pytest.raises(RequestError):
        array_of("x", [[float("nan")]], ArraySpec((1,), "uint8"))


def test_values_that_fit() -> None:
    assert np.isnan(array_of("x", [[None]], ArraySpec((1,), "float64"))).all()
    assert array_of("x", [1.0, 2.0], ArraySpec((1,), "uint8")).tolist() == [[1], [2]]
    assert array_of("x", [None, "ü", {"b64": "w7w="}], ArraySpec((), "string")).tolist() == ["", "ü", "ü"]
    assert array_of("x", [[1, 2], [3, 4]], ArraySpec((None,), "int32")).dtype == np.int32


def test_bodies_that_are_wrong(numbers: Server) -> None:
    def error(body: Any, path: str = PREDICT) -> str:
        answer = numbers.ask(path, body)
        assert answer.status == 400
        return answer.error

    assert "not valid JSON" in error(b"{")
    assert '"instances" or "inputs"' in error([])
    assert "at least one example" in error({"instances": []})
    assert "instance 1: input x is missing; there is no input y" in error({"instances": [{"x": [0] * 4}, {"y": 1}]})
    assert "either all objects" in error({"instances": [{"x": [0] * 4}, [0] * 4]})
    assert "serving_default only" in error({"instances": [[0] * 4], "signature_name": "other"})
    assert "the model takes x (float32 4)" in error({"inputs": {"y": 1}})
    assert "has no examples" in error({"inputs": {"x": []}}) or "takes examples" in error({"inputs": {"x": []}})
    given = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [0, 1, 2, 3]}
    assert '"inputs", a list of tensors' in error({}, INFER)
    assert "must have the datatype FP32, not 'FP64'" in error({"inputs": [{**given, "datatype": "FP64"}]}, INFER)
    assert "x is given twice" in error({"inputs": [given, given]}, INFER)
    assert "shape must be a list of whole numbers" in error({"inputs": [{**given, "shape": [-1, 4]}]}, INFER)
    assert "has 4 values, but its shape [2, 4] needs 8" in error({"inputs": [{**given, "shape": [2, 4]}]}, INFER)
    assert "the outputs are probabilities" in error({"inputs": [given], "outputs": [{"name": []}]}, INFER)
    assert "takes arrays only" in error(b"1,2,3,4", "/predict")
    assert numbers.ask("/readyz").status == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["x", "s", "FP32"]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(
                ["x", "s", "instances", "inputs", "b64", "name", "shape", "datatype", "data", "parameters"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)

SERVICE = Service(
    name="two",
    model=ServedModelFile("onnx", "none", "model.onnx", 0.0),
    inputs=(Tensor("x", (None, 2), "uint8"), Tensor("s", (1,), "string")),
    outputs=(Tensor("y", (1,), "float32"),),
)


def check_inputs(read: Callable[[], Any]) -> None:
    """The inputs fit the model, or an error says what is wrong."""
    try:
        inputs = read()
    except RequestError as error:
        inputs = error
    if isinstance(inputs, RequestError):
        assert inputs.status == 400
        return
    assert inputs["x"].dtype == np.uint8
    assert inputs["x"].ndim == 3
    assert inputs["x"].shape[2] == 2
    assert inputs["s"].shape == (len(inputs["x"]), 1)
    assert all(isinstance(text, str) for text in inputs["s"].reshape(-1))


@settings(max_examples=30, deadline=None)
@given(JSON | JSON.map(lambda value: {"instances": value}) | JSON.map(lambda value: {"inputs": value}))
def test_any_json_is_inputs_or_an_error(body: Any) -> None:
    check_inputs(lambda: rest_v1.inputs_of(body, SERVICE)[0])
    check_inputs(lambda: open_inference.inputs_of(body, b"", SERVICE)[0])


TENSOR = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["x", "s"]),
        "shape": st.lists(st.integers(-1, 4), max_size=4),
        "datatype": st.sampled_from(["UINT8", "BYTES"]),
    },
    optional={
        "data": st.lists(st.integers(0, 300) | st.text(max_size=2), max_size=8),
        "parameters": st.fixed_dictionaries({"binary_data_size": st.integers(-1, 20)}),
    },
)


@settings(max_examples=30, deadline=None)
@given(st.lists(TENSOR, max_size=3), st.binary(max_size=20))
def test_any_tensors_are_inputs_or_an_error(tensors: list[dict[str, Any]], binary: bytes) -> None:
    check_inputs(lambda: open_inference.inputs_of({"inputs": tensors}, binary, SERVICE)[0])
    request = message("inference.ModelInferRequest")(model_name="two", raw_input_contents=[binary] * len(tensors))
    for each in tensors:
        request.inputs.add(name=each["name"], shape=each["shape"], datatype=each["datatype"])
    check_inputs(lambda: grpc_server.inputs_of(request, SERVICE))


def test_nesting_without_end_is_an_error(numbers: Server) -> None:
    for body in (b"[" * 100_000, b'{"instances":' * 100_000, b'{"instances":' + b"[" * 900 + b"]" * 900 + b"}"):
        assert numbers.ask(PREDICT, body).status == 400
    with pytest.raises(RequestError, match="nested too deeply"):
        array_of("s", orjson.loads(b"[" * 500 + b"]" * 500), ArraySpec((), "string"))


def test_a_small_picture_of_many_pixels_is_not_decoded(images: Server) -> None:
    stream = BytesIO()
    Image.new("1", (10_000, 10_000)).save(stream, "PNG")
    assert len(stream.getvalue()) < 100_000
    problem = "the image has 100,000,000 pixels; the server takes 67,108,864 at most"
    found = images.ask("/predict", stream.getvalue())
    assert (found.status, found.error) == (413, problem)
    value = {"b64": base64.b64encode(stream.getvalue()).decode()}
    assert images.ask("/v1/models/small:predict", {"instances": [value]}).error == problem


def test_an_error_names_the_clients_file(folders: Path) -> None:
    form = UploadForm("table", columns=(ColumnFormat("age", "number"),))
    service = replace(read_service(folders / "numbers"), files=form, inputs=(Tensor("age", (1,), "float32"),))
    for name, told in (("", "the file"), ("../people.csv", "people.csv"), ("a\x1b[2J\0.csv", "a\\x1b[2J\\x00.csv")):
        for content in (b"size\n1\n", b"age\nold\n"):
            with pytest.raises(RequestError) as caught:
                read_file(content, name, "text/csv", service)
            assert str(caught.value).startswith(told), caught.value
            assert "uploaded" not in str(caught.value)
    found = read_file(b"age,age\n1,2\nold,3\n", "people.csv", "", service)
    assert found.inputs["age"].tolist()[0] == [1.0]
    assert any("age" in note and "read as missing" in note for note in found.notes), found.notes
    assert len(found.notes) == 2, found.notes  # the other one is of the second column of this name


def test_rows_and_samples_are_counted_before_they_take_memory(folders: Path) -> None:
    table, sounds = UploadForm("table", columns=(ColumnFormat("age", "number"),)), UploadForm("audio", sample_rate=8000)
    service = replace(read_service(folders / "numbers"), files=table, inputs=(Tensor("age", (1,), "float32"),))
    rows = 1 << 17
    parquet, flac = BytesIO(), BytesIO()
    write_table(pa.table({"age": pa.array([1.0]).take(pa.array([0] * rows))}), parquet)
    for content in (b"age\n" + b"1\n" * (rows - 1), parquet.getvalue()):
        with pytest.raises(RequestError, match="the file has 131,072 rows; the server takes 65,536 at most"):
            read_file(content, "a.parquet" if content.startswith(b"PAR1") else "a.csv", "", service)
    text = replace(service, files=UploadForm("text", features=("age",)), inputs=(Tensor("age", (), "string"),))
    found = read_file(b'age\n"' + b"1\n" * rows + b'"\n', "a.csv", "", text)  # one text of many lines
    assert len(found.names) == 1
    with soundfile.SoundFile(flac, "w", 8000, 8, format="FLAC") as file:
        for _ in range(9):
            file.write(np.zeros((1 << 20, 8), np.int16))
    sound = replace(service, files=sounds, inputs=(Tensor("x", (800, 1), "float32"),))
    with pytest.raises(RequestError, match="the sound has 75,497,472 samples"):
        read_file(flac.getvalue(), "a.flac", "", sound)


def test_too_large_too_many_and_compressed(start: Start, folders: Any) -> None:
    server = start(folders / "numbers", "--max-body", "2000", "--max-queue", "50", "--timeout", "1")
    many = server.ask(PREDICT, {"instances": [[0] * 4] * 51})
    assert (many.status, "at most 50 at once" in many.error) == (413, True)
    for rows in (100, 100_000):  # the second one takes longer to send than an answer to come
        large = server.ask(PREDICT, {"instances": [[0.123456] * 4] * rows})
        assert (large.status, "larger than 2,000 bytes" in large.error) == (413, True)
    assert server.ask(PREDICT, b"{}", {"Content-Encoding": "gzip"}).status == 415
    lead = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection(("127.0.0.1", server.state["port"]), 30) as link:
        link.sendall(f"{lead}Transfer-Encoding: chunked\r\n\r\n".encode() + b"3e8\r\n" + b"1" * 1000 + b"\r\n")
        link.sendall((b"3e8\r\n" + b"1" * 1000 + b"\r\n") * 3)
        assert b"413" in link.recv(100)
    with socket.create_connection(("127.0.0.1", server.state["port"]), 30) as link:  # a body that does not come
        link.sendall(f"{lead}Content-Length: 100\r\n\r\n12345".encode())
        assert b"408" in link.recv(100)
    with socket.create_connection(("127.0.0.1", server.state["port"]), 30) as link:  # no HTTP
        link.sendall(b"\0\1\2 nonsense\r\n\r\n")
        assert b"400" in link.recv(100)
    assert server.ask(PREDICT, {"instances": [[0] * 4]}).status == 200


@pytest.mark.campaign
def test_a_head_that_does_not_come_ends_the_connection(start: Start, folders: Any) -> None:
    server = start(folders / "numbers")
    for content in (b"", b"POST / HTTP/1.1\r\nHost:"):
        with socket.create_connection(("127.0.0.1", server.state["port"]), 60) as link:
            link.sendall(content)
            assert link.recv(100) == b""


@pytest.mark.campaign
@settings(max_examples=3000, deadline=None)
@given(st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_get_an_answer(body: bytes) -> None:
    server = test_any_bytes_get_an_answer.server  # type: ignore[attr-defined]
    for path in (PREDICT, INFER, "/predict"):
        assert server.ask(path, body).status in (200, 400)


@pytest.fixture(autouse=True)
def _server(request: pytest.FixtureRequest) -> None:
    if request.function.__name__ == "test_any_bytes_get_an_answer":
        request.function.server = request.getfixturevalue("numbers")
