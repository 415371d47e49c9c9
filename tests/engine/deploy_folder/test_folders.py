"""Folders of all kinds, rendered for texts of any kind, without starting their servers."""

import csv
import dataclasses
import json
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest
import yaml
from google.protobuf import text_format

from accel_engine.data.data_options import ColumnFormat, Notation
from accel_engine.deploy_folder import container
from accel_engine.deploy_folder.folder_options import FolderOptions
from accel_engine.deploy_folder.manifests import rate_line, resources_of
from accel_engine.deploy_folder.model_card import model_card
from accel_engine.deploy_folder.rendering import clean
from accel_engine.deploy_folder.tensorflow_serving import write_serving_folder
from accel_engine.deployment.sizing import Sizing
from accel_engine.model_server.service import Tensor, UploadForm
from engine.deploy_folder.custom_kinds import INFERENCE_SERVICE, SERVICE_MONITOR, SERVING_RUNTIME
from engine.deploy_folder.servables import MEASURED, facts_of, service_of, write_servable
from engine.deploy_folder.serving_messages import model_server_config, monitoring_config

NASTY = "a \"b\" 'c' \\ $(id) ${HOME} `x` {{ .y }} @{name} # | <i> 😀\n- z: \u202e"
NASTY_NAME = "d\"i'g$(id){{x}}\\😀"
"""What may be the name in a URL."""


def write(folder: Path, options: FolderOptions, monkeypatch, kind: str = "onnx", text: str = NASTY) -> Path:
    monkeypatch.setattr(container, "_proved", lambda *_: MEASURED)
    service = service_of(kind, NASTY_NAME if text == NASTY else text, text)
    write_servable(folder / "model", service)
    container.write_server_folder(folder, facts_of(service, text), options)
    return folder


def documents(path: Path) -> list[dict]:
    return list(yaml.safe_load_all(path.read_text("utf-8")))


def test_the_container_has_the_texts_as_they_are(tmp_path, monkeypatch) -> None:
    write(tmp_path, FolderOptions(to="x"), monkeypatch)
    dockerfile = (tmp_path / "Dockerfile").read_text("utf-8")
    labels = dict(re.findall(r'^(?:LABEL)? +([\w.-]+)=("(?:[^"\\]|\\.)*")', dockerfile, re.MULTILINE))

    assert shlex.split(labels["org.opencontainers.image.title"].replace("\\$", "$")) == [NASTY_NAME]
    assert shlex.split(labels["io.accel-tui.run"].replace("\\$", "$")) == [clean(NASTY)]
    assert {"io.accel-tui.step", "io.accel-tui.data-hash", "io.accel-tui.versions"} <= labels.keys()
    assert "tensorflow" not in (tmp_path / "requirements.txt").read_text()
    (compose,) = documents(tmp_path / "compose.yaml")
    assert compose["services"]["model"]["read_only"]
    assert compose["services"]["model"]["deploy"]["resources"]["limits"] == {"cpus": "1", "memory": "256Mi"}
    assert "deploy check" in (tmp_path / "README.md").read_text("utf-8")


@pytest.mark.parametrize(("accelerator", "line"), [("gpu", "tensorflow[and-cuda]==2.21.0"), ("tpu", "tensorflow-tpu")])
def test_containers_for_accelerators(accelerator: str, line: str, tmp_path, monkeypatch) -> None:
    options = FolderOptions(to="x", accelerator=accelerator, target="kubernetes", node_selector=("a/b=c",))
    write(tmp_path, options, monkeypatch, "savedmodel")
    (deployment,) = documents(tmp_path / "kubernetes/10-deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]

    assert line in (tmp_path / "requirements.txt").read_text()
    assert pod["nodeSelector"]["a/b"] == "c"
    resource = {"gpu": "nvidia.com/gpu", "tpu": "google.com/tpu"}[accelerator]
    assert pod["containers"][0]["resources"]["limits"][resource] == 1
    assert pod["tolerations"] == [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}]


def test_kubernetes_has_what_was_measured(tmp_path, monkeypatch) -> None:
    write(tmp_path, FolderOptions(to="x", target="kubernetes", image="r.example/m/digits:7"), monkeypatch)
    kinds = {each["kind"]: each for path in (tmp_path / "kubernetes").iterdir() for each in documents(path)}
    pod = kinds["Deployment"]["spec"]["template"]["spec"]
    (server,) = pod["containers"]

    assert kinds["Deployment"]["metadata"]["annotations"]["accel-tui/run"] == clean(NASTY)
    assert kinds["Deployment"]["metadata"]["annotations"]["accel-tui/name"] == NASTY_NAME
    assert server["image"] == "r.example/m/digits:7"
    assert server["resources"]["requests"] == server["resources"]["limits"] == {"cpu": "1", "memory": "256Mi"}
    assert server["startupProbe"]["failureThreshold"] * server["startupProbe"]["periodSeconds"] >= 30
    assert server["securityContext"]["readOnlyRootFilesystem"]
    selector = kinds["Deployment"]["spec"]["selector"]["matchLabels"]
    assert selector.items() <= kinds["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    for kind in ("PodDisruptionBudget", "ServiceMonitor"):
        assert kinds[kind]["spec"]["selector"]["matchLabels"] == selector
    assert kinds["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == selector
    assert kinds["Service"]["spec"]["selector"] == selector
    files = {path.name for path in (tmp_path / "kubernetes").iterdir()} - {"kustomization.yaml"}
    assert set(kinds["Kustomization"]["resources"]) == files
    msgspec.convert(kinds["ServiceMonitor"], SERVICE_MONITOR)


def test_a_target_chooses_replicas(tmp_path) -> None:
    sizing = Sizing(format="onnx", threads=2, rate=210.0, target_latency=0.02, target_rate=500, cores=1.4)
    sizing = dataclasses.replace(sizing, memory_bytes=300 << 20)
    facts = dataclasses.replace(facts_of(service_of()), sizing=sizing)

    found = resources_of(facts, FolderOptions(to="x"))

    assert (found.replicas, found.max_replicas, found.memory, found.cpus) == (3, 10, 512 << 20, 2)
    assert "500 requests/s take 3 replicas" in rate_line(facts)


def test_kserve_by_both_protocols(tmp_path, monkeypatch) -> None:
    write(tmp_path, FolderOptions(to="x", target="kserve", storage="gs://b/c"), monkeypatch, "savedmodel")
    (own,) = documents(tmp_path / "kserve/inference-service.yaml")
    runtime, served = documents(tmp_path / "kserve/tensorflow-runtime.yaml")

    msgspec.convert(own, INFERENCE_SERVICE)
    msgspec.convert(served, INFERENCE_SERVICE)
    msgspec.convert(runtime, SERVING_RUNTIME)
    assert runtime["spec"]["containers"][0]["image"] == "tensorflow/serving:2.21.0"
    assert served["spec"]["predictor"]["model"]["runtime"] == runtime["metadata"]["name"]
    assert served["spec"]["predictor"]["model"]["storageUri"] == "gs://b/c"


def test_kserve_without_a_saved_model_has_only_the_container(tmp_path, monkeypatch) -> None:
    write(tmp_path, FolderOptions(to="x", target="kserve"), monkeypatch)

    assert [path.name for path in (tmp_path / "kserve").iterdir()] == ["inference-service.yaml"]
    assert "--format savedmodel" in (tmp_path / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("accelerator", "devices"), [("cpu", {}), ("gpu", {"num_gpus": 1}), ("tpu", {"resources": {"TPU": 1}})]
)
def test_an_application_of_ray_serve(tmp_path, monkeypatch, accelerator: str, devices: dict[str, object]) -> None:
    options = FolderOptions(to="x", target="ray-serve", accelerator=accelerator)
    write(tmp_path, options, monkeypatch, "onnx" if accelerator == "cpu" else "savedmodel")
    (found,) = documents(tmp_path / "serve.yaml")

    (application,) = found["applications"]
    module, _, name = application["import_path"].partition(":")
    code = compile((tmp_path / f"{module}.py").read_text("utf-8"), module, "exec")
    assert name in code.co_names
    (deployment,) = application["deployments"]
    assert deployment["name"] in code.co_consts
    assert deployment["ray_actor_options"].pop("memory") >= 1 << 27
    assert deployment["ray_actor_options"] == {"num_cpus": 1, **devices}
    assert deployment["autoscaling_config"]["min_replicas"] == 2
    assert "ray[serve]" in (tmp_path / "requirements.txt").read_text("utf-8")
    assert "serve run serve.yaml" in (tmp_path / "README.md").read_text("utf-8")


def kubernetes_files(folder: Path, monkeypatch) -> list[Path]:
    paths = []
    for accelerator in ("cpu", "gpu", "tpu"):
        options = FolderOptions(to="x", target="kubernetes", accelerator=accelerator)
        found = write(folder / accelerator, options, monkeypatch, "savedmodel") / "kubernetes"
        paths += sorted(found.glob("[1-5]*.yaml"))
    return paths


def test_kubernetes_takes_the_manifests(tmp_path, monkeypatch) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="`make container` installs kubernetes-validate")

    paths = kubernetes_files(tmp_path, monkeypatch)
    for path in paths:
        for each in documents(path):
            validator.validate(each, "1.33", strict=True)
    (wrong,) = documents(paths[0])
    wrong["spec"]["template"]["spec"]["containers"][0]["resource"] = {}
    with pytest.raises(validator.ValidationError):
        validator.validate(wrong, "1.33", strict=True)


def test_kubectl_builds_the_kustomization(tmp_path, monkeypatch) -> None:
    if not (kubectl := shutil.which("kubectl")):
        pytest.skip("there is no kubectl")
    write(tmp_path, FolderOptions(to="x", target="kubernetes"), monkeypatch)

    done = subprocess.run([kubectl, "kustomize", tmp_path / "kubernetes"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    built = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    assert len(built) == 6
    assert built["Deployment"]["metadata"]["annotations"]["accel-tui/name"] == NASTY_NAME


def test_hadolint_passes(tmp_path, monkeypatch) -> None:
    if not (linter := shutil.which("hadolint")):
        pytest.skip("`make container` installs hadolint")
    for accelerator in ("cpu", "gpu"):
        kind = "savedmodel"
        options = FolderOptions(to="x", accelerator=accelerator)
        folder = write(tmp_path / accelerator, options, monkeypatch, kind)
        done = subprocess.run([linter, folder / "Dockerfile"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")


def test_a_script_sends_the_example(tmp_path, monkeypatch) -> None:
    write(tmp_path, FolderOptions(to="x"), monkeypatch)
    (tmp_path / "bin").mkdir()
    curl = tmp_path / "bin/curl"
    curl.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    curl.chmod(0o755)

    done = subprocess.run(
        ["sh", tmp_path / "clients/curl.sh", "http://h:1"],
        env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert f"@{tmp_path}/clients/example.json" in done.stdout.splitlines()
    assert "http://h:1/v2/models/d%22i%27g%24%28id%29%7B%7Bx%7D%7D%5C%F0%9F%98%80/infer" in done.stdout.splitlines()
    assert "http://h:1/predict" in done.stdout.splitlines()


FORMS = {
    "images": ((Tensor("inputs", (4, 4, 3), "uint8"),), UploadForm(kind="images"), "example.png"),
    "grey images": ((Tensor("inputs", (4, 4, 1), "float32"),), UploadForm(kind="images", high=1.0), "example.png"),
    "text": ((Tensor("review", (), "string"),), UploadForm(kind="text", features=("review",)), "example.txt"),
    "series": ((Tensor("inputs", (3, 2), "float32"),), UploadForm(kind="series", features=("a", "b")), "example.csv"),
    "series with times": (
        (Tensor("inputs", (3, 2), "float32"),),
        UploadForm(kind="series", columns=(ColumnFormat("t", "number"),), features=("a", "b"), time="t", group="g"),
        "example.csv",
    ),
    "series with dates": (
        (Tensor("inputs", (3, 2), "float32"),),
        UploadForm(kind="series", columns=(ColumnFormat("t", "date"),), features=("a", "b"), time="t"),
        "",
    ),
    "table with a date": (
        (Tensor("age", (1,), "float32"), Tensor("born_year", (1,), "float32")),
        UploadForm(kind="table", columns=(ColumnFormat("born", "date"), ColumnFormat("age", "number"))),
        "example.csv",
    ),
    "table with other letters": (
        (Tensor("city_of_shop", (1,), "string"), Tensor("a_b", (1,), "float32"), Tensor("a_b_2", (1,), "float32")),
        UploadForm(
            kind="table",
            columns=(
                ColumnFormat("city of shop", "category"),
                ColumnFormat("a b", "number"),
                ColumnFormat("a-b", "number"),
            ),
        ),
        "example.csv",
    ),
    "table with decimal commas": (
        (Tensor("age", (1,), "float32"),),
        UploadForm(kind="table", columns=(ColumnFormat("age", "number", notation=Notation(decimal=",")),)),
        "",
    ),
    "audio": ((Tensor("inputs", (400, 1), "float32"),), UploadForm(kind="audio", sample_rate=8000), "example.wav"),
    "language": ((Tensor("inputs", (4,), "int32"),), UploadForm(kind="language", vocabulary=("a", "b")), "example.txt"),
    "arrays": ((Tensor("x", (2,), "float64"), Tensor("y", (2, 2), "int64")), UploadForm(), ""),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_task_has_an_example(form: str, tmp_path, monkeypatch) -> None:
    inputs, files, name = FORMS[form]
    service = service_of(inputs=inputs, files=files)
    words = np.array(["good", "bad", "so"], object)
    texts = {each.name: words.reshape(3, *each.shape) for each in inputs if each.dtype == "string"}
    numbers = {each.name: np.ones((3, *each.shape), each.dtype) for each in inputs if each.dtype != "string"}
    write_servable(tmp_path / "model", service, texts | numbers if texts else None)
    (tmp_path / "clients").mkdir()

    found = container.write_client_examples(tmp_path / "model", tmp_path / "clients")

    request = json.loads((tmp_path / "clients/example.json").read_text())
    assert found == name
    assert [each["name"] for each in request["inputs"]] == [each.name for each in inputs]
    assert [each["shape"] for each in request["inputs"]] == [[1, *each.shape] for each in inputs]
    assert not name or (tmp_path / "clients" / name).stat().st_size
    if files.kind == "table" and name:
        header, row = csv.reader((tmp_path / "clients" / name).read_text().splitlines())
        assert header == [each.name for each in files.columns]
        assert all(bool(cell) is (each.kind != "date") for cell, each in zip(row, files.columns, strict=True))


@pytest.mark.parametrize(
    ("date_format", "hour", "written"),
    [
        ("ISO 8601", 0, "2024-02-29"),
        ("ISO 8601", 13.75, "2024-02-29 13:45:00"),
        ("%d.%m.%Y", 0, "29.02.2024"),
        ("Unix milliseconds", 0.5, "1709166600000"),
        ("ISO 8601", np.nan, ""),
    ],
)
def test_a_date_of_an_example_is_as_the_training_file_wrote_it(date_format, hour, written, tmp_path) -> None:
    parts = {"year": 2024, "month": 2, "day": 29, "weekday": 3, "hour": hour}
    files = UploadForm(kind="table", columns=(ColumnFormat("born on", "date", date_format),))
    service = service_of(inputs=tuple(Tensor(f"born_on_{part}", (1,), "float32") for part in parts), files=files)
    values = {f"born_on_{part}": np.array([[value]], np.float32) for part, value in parts.items()}
    write_servable(tmp_path / "model", service, values)
    (tmp_path / "clients").mkdir()
    container.write_client_examples(tmp_path / "model", tmp_path / "clients")
    assert (tmp_path / "clients/example.csv").read_text().splitlines() == ["born on", written or '""']


def test_an_example_of_several_lines_is_one_cell(tmp_path) -> None:
    inputs, files, _ = FORMS["text"]
    texts = {"review": np.array(['so "good"\nagain'], object)}
    write_servable(tmp_path / "model", service_of(inputs=inputs, files=files), texts)
    (tmp_path / "clients").mkdir()
    assert container.write_client_examples(tmp_path / "model", tmp_path / "clients") == "example.csv"
    with (tmp_path / "clients/example.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["review"], ['so "good"\nagain']]


def test_an_example_without_missing_numbers_is_chosen(tmp_path) -> None:
    service = service_of(inputs=(Tensor("age", (1,), "float32"),), files=UploadForm(kind="table"))
    write_servable(tmp_path / "model", service, {"age": np.array([[np.nan], [0.1], [3]], np.float32)})
    (tmp_path / "clients").mkdir()

    container.write_client_examples(tmp_path / "model", tmp_path / "clients")

    assert json.loads((tmp_path / "clients/example.json").read_text())["inputs"][0]["data"] == [0.1]


def test_a_card_says_how_good_the_model_is() -> None:
    text = model_card(facts_of(service_of(text=NASTY), NASTY))

    assert "| accuracy | 0.9 | 0.8 to 0.95 | 0.9 | 0.5 |" in text
    assert "Fewer than 30 examples" in text
    assert "1,437 of training, 360 of validation" in text
    assert "<i>" not in text


def test_a_card_without_an_evaluation() -> None:
    facts = facts_of(service_of())
    text = model_card(dataclasses.replace(facts, evaluation=None, licence=""))

    assert "| accuracy | 0.9 |" in text
    assert "Licence | not given" in text


def test_tensorflow_serving_takes_the_configuration(tmp_path) -> None:
    service = service_of("savedmodel", NASTY_NAME, NASTY)
    servable = write_servable(tmp_path / "servable", service)
    folder = tmp_path / "folder"
    folder.mkdir()

    write_serving_folder(folder, servable, facts_of(service, NASTY), FolderOptions(to="x", target="tensorflow-serving"))

    assert (folder / "models/model/1/saved_model.pb").is_file()
    assert (folder / "config/batching.config").is_file()
    found = text_format.Parse((folder / "config/models.config").read_text("utf-8"), model_server_config())
    (config,) = found.model_config_list.config
    assert (config.name, config.base_path, config.model_platform) == (NASTY_NAME, "/models/model", "tensorflow")
    assert list(config.model_version_policy.specific.versions) == [1]
    assert dict(config.version_labels) == {"stable": 1, "canary": 1}
    monitoring = text_format.Parse((folder / "config/monitoring.config").read_text(), monitoring_config())
    assert monitoring.prometheus_config.enable
    (compose,) = documents(folder / "compose.yaml")
    assert "--enable_batching" in compose["services"]["serving"]["command"]
    served = json.loads((folder / "examples.json").read_text("utf-8"))
    assert served["allowed"] == {"probabilities": [1e-3]}
    assert len(served["outputs"]["probabilities"]) == 6


def test_tensorflow_serving_own_messages_take_the_configuration(tmp_path) -> None:
    own = pytest.importorskip(
        "tensorflow_serving.config.model_server_config_pb2", reason="`make container` installs tensorflow-serving-api"
    )
    service = service_of("savedmodel", NASTY_NAME, NASTY)
    folder = tmp_path / "folder"
    folder.mkdir()
    options = FolderOptions(to="x", target="tensorflow-serving")

    write_serving_folder(folder, write_servable(tmp_path / "servable", service), facts_of(service, NASTY), options)

    found = text_format.Parse((folder / "config/models.config").read_text("utf-8"), own.ModelServerConfig())
    assert dict(found.model_config_list.config[0].version_labels) == {"stable": 1, "canary": 1}


def test_the_grpc_client_of_tensorflow_serving_sends_what_its_service_takes(tmp_path) -> None:
    service_messages = pytest.importorskip(
        "tensorflow_serving.apis.prediction_service_pb2_grpc", reason="`make container` installs tensorflow-serving-api"
    )
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2

    inputs = (Tensor("pixels", (2, 2), "uint8"), Tensor("word", (), "string"))
    service = service_of("savedmodel", inputs=inputs)
    given = {"pixels": np.full((3, 2, 2), 7, np.uint8), "word": np.array(["grün", "b", "c"], object)}
    folder = tmp_path / "folder"
    folder.mkdir()
    servable = write_servable(tmp_path / "servable", service, given)
    write_serving_folder(folder, servable, facts_of(service), FolderOptions(to="x", target="tensorflow-serving"))
    asked = []

    class Servicer(service_messages.PredictionServiceServicer):
        def Predict(self, request, context):  # noqa: N802 (the service's name)
            asked.append(request)
            answer = predict_pb2.PredictResponse()
            answer.outputs["probabilities"].CopyFrom(tf.make_tensor_proto(np.ones((1, 2), np.float32)))
            return answer

    server = grpc.server(ThreadPoolExecutor(1))
    service_messages.add_PredictionServiceServicer_to_server(Servicer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    client = [sys.executable, folder / "clients/grpc_client.py", f"127.0.0.1:{port}"]
    done = subprocess.run(client, capture_output=True, text=True, check=False)
    server.stop(None)

    assert "trained model  1.0 1.0" in done.stdout, done.stderr
    (request,) = asked
    assert (request.model_spec.name, request.model_spec.signature_name) == ("digits", "serving_default")
    np.testing.assert_array_equal(tf.make_ndarray(request.inputs["pixels"]), given["pixels"][:1])
    assert tf.make_ndarray(request.inputs["word"]).tolist() == ["grün".encode()]
