"""Models of every task are served as they were trained: by each protocol, in each format, and from files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from google.protobuf import json_format
from tensorflow.core.protobuf import meta_graph_pb2

from accel_engine.model_export.export_options import target_at
from accel_engine.model_export.service_folder import write_service_folder
from accel_engine.model_server.open_inference import datatype_of
from accel_engine.model_server.service import Service, compare_outputs, load_examples, read_service
from accel_engine.plan import Plan
from accel_engine.requests.predict import PredictionRequest
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.write_service import ServiceRequest
from accel_engine.service_client.find_service import find_service, parse_url
from accel_engine.trained.prediction.predict import predict
from accel_tui.predictions.objects import objects
from combinations.materials import MATERIALS, Material, of_task
from combinations.served import MODEL_PATHS, SERVED
from engine.training.conftest import Gym, placed  # noqa: F401 (a fixture)

from .conftest import Server, Start

Arrays = dict[str, np.ndarray]

CASES = [(kind, form) for kind, forms in SERVED.items() for form in forms.split()]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Material, Path]]]:
    """The material and the run of each kind that was trained."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCEL_TUI_HOME", str(tmp_path_factory.mktemp("home")))
        yield {}


def trained(kind: str, runs: dict[str, tuple[Material, Path]], place: Path) -> tuple[Material, Path]:
    if kind not in runs:
        folder = place / "data"
        folder.mkdir()
        material = MATERIALS[kind](folder) if kind in MATERIALS else of_task(kind, folder)
        plan = Plan(**{"batch_size": 8, "epochs": 1, **material.fields})
        runs[kind] = material, Gym().train(plan).directory
    return runs[kind]


def written(directory: Path, form: str, folder: Path) -> Service:
    folder.mkdir()
    target = target_at(folder / MODEL_PATHS[form], form, "none")
    temporary = folder.with_name("temporary")
    temporary.mkdir()
    request = ServiceRequest(
        ModelReference.of(directory), (target,), "auto", folder=temporary, service_folder=folder, held_out=20
    )
    (found,) = write_service_folder(request).exported
    assert found.problem == ""
    return read_service(folder)


def as_bytes(array: np.ndarray) -> np.ndarray:
    """Texts as the client takes them."""
    if array.dtype != object:
        return array
    return np.array([text.encode() for text in array.reshape(-1)], object).reshape(array.shape)


def without_nan(array: np.ndarray) -> Any:
    """Values for JSON, in which a missing number is null."""
    return np.where(np.isnan(array), None, array.astype(object)).tolist() if array.dtype.kind == "f" else array.tolist()


def by_rows(server: Server, service: Service, inputs: Arrays) -> Arrays:
    columns = {name: without_nan(array) for name, array in inputs.items()}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    found = server.ask(f"/v1/models/{service.name}:predict", {"instances": rows})
    assert found.status == 200, found.content
    predictions = found.json["predictions"]
    if isinstance(predictions[0], dict):
        return {name: np.array([row[name] for row in predictions]) for name in predictions[0]}
    return {service.outputs[0].name: np.array(predictions)}


def by_json(server: Server, service: Service, inputs: Arrays) -> Arrays:
    tensors = [
        {
            "name": name,
            "shape": array.shape,
            "datatype": datatype_of(service.specs[name]),
            "data": without_nan(array.reshape(-1)),
        }
        for name, array in inputs.items()
    ]
    found = server.ask(f"/v2/models/{service.name}/infer", {"inputs": tensors})
    assert found.status == 200, found.content
    return {each["name"]: np.array(each["data"]).reshape(each["shape"]) for each in found.json["outputs"]}


def by_client(client: Any, library: Any, service: Service, inputs: Arrays) -> Arrays:
    tensors = []
    for name, array in inputs.items():
        tensor = library.InferInput(name, list(array.shape), datatype_of(service.specs[name]))
        tensor.set_data_from_numpy(as_bytes(array))
        tensors.append(tensor)
    found = client.infer(service.name, tensors)
    return {name: found.as_numpy(name) for name in service.output_specs}


def by_binary(server: Server, service: Service, inputs: Arrays) -> Arrays:
    client = tritonclient.http.InferenceServerClient(server.url.removeprefix("http://"))
    return by_client(client, tritonclient.http, service, inputs)


def by_grpc(server: Server, service: Service, inputs: Arrays) -> Arrays:
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.state['grpc_port']}")
    return by_client(client, tritonclient.grpc, service, inputs)


def by_serving_grpc(server: Server, service: Service, inputs: Arrays) -> Arrays:
    url = parse_url(f"grpc://127.0.0.1:{server.state['grpc_port']}/{service.name}")
    return find_service(url, (), "grpc-v1").run(inputs)


PROTOCOLS: tuple[Callable[[Server, Service, Arrays], Arrays], ...] = (
    *(by_rows, by_json, by_binary, by_grpc, by_serving_grpc),
)


@contextmanager
def serving(start: Start, folder: Path) -> Iterator[Server]:
    server = start(folder, "--grpc-port", "0")
    yield server
    assert server.stop() == 0


@pytest.mark.campaign
@pytest.mark.parametrize(("kind", "form"), CASES)
def test_a_server_answers_as_the_trained_model(
    kind: str, form: str, runs: dict[str, tuple[Material, Path]], start: Start, tmp_path: Path
) -> None:
    material, directory = trained(kind, runs, tmp_path)
    service = written(directory, form, tmp_path / "service")
    inputs, expected = load_examples(tmp_path / "service")
    with serving(start, tmp_path / "service") as server:
        for protocol in PROTOCOLS:
            found = compare_outputs(service, expected, protocol(server, service, inputs))
            assert found.problem == "", protocol.__name__
        signature = server.ask(f"/v1/models/{service.name}/metadata").json["metadata"]["signature_def"]["signature_def"]
        found_signature = json_format.ParseDict(signature["serving_default"], meta_graph_pb2.SignatureDef())
        assert set(found_signature.outputs) == set(service.output_specs)
        if service.files.kind != "arrays":
            check_file(server, service, material, directory)


def check_file(server: Server, service: Service, material: Material, directory: Path) -> None:
    """A file is predicted as the command does."""
    words = material.predict
    if words[0] == "--prompt":
        (found,) = server.ask("/predict", words[1].encode(), {"Content-Type": "text/plain"}).json["predictions"]
        assert found["label"] in service.files.vocabulary
        assert found["top"][0]["probability"] >= found["top"][1]["probability"]
        return
    if words[0] == "--text":
        texts = words[1::2]
        body, name, request = "\n".join(texts).encode(), "new.txt", PredictionRequest(directory, (), tuple(texts))
    elif words[0].endswith(".npz"):
        return
    else:
        body, name = Path(words[0]).read_bytes(), Path(words[0]).name
        request = PredictionRequest(directory, (Path(words[0]),))
    answer = server.ask("/predict", body, {"X-File-Name": name})
    assert answer.status == 200, answer.content
    wanted = list(objects(predict(request), 3))
    found = answer.json["predictions"]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        for key in one.keys() - {"example"}:
            check_equal(one[key], other[key])


def check_equal(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            check_equal(one[key], other[key])
    elif isinstance(one, list):
        for each in zip(one, other, strict=True):
            check_equal(*each)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-4)
    else:
        assert one == other
