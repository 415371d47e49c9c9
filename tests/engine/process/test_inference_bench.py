"""What the engine process is asked, with which devices in sight, and how its parts come back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from accel_engine.errors import RunError
from accel_engine.inference.candidate import Candidate, HeldOutMetrics
from accel_engine.inference.measurement.percentiles import LiveWindow, Percentile
from accel_engine.inference.text_encoding import sidecar_of
from accel_engine.plan import Plan
from accel_engine.process import inference_bench
from accel_engine.process.inference_bench import InferenceBench, ModelFile, measure_models
from accel_engine.requests.bench_models import BenchedModel, BenchNotes, BenchOptions, BenchRequest
from accel_engine.requests.held_out_metrics import HeldOutRequest, MetricsOfModels
from accel_engine.requests.protocol import model_reference
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.protocol.request import ON_THE_CPU, ExamplesDone
from accel_engine.run import create

CANDIDATE = Candidate(
    model="m.keras",
    format="keras",
    device="cpu:0",
    xla=True,
    scenario="multi-stream",
    batch_size=4,
    percentiles={"p50": Percentile(0.1, 0.05, None)},
)

WINDOW = LiveWindow("m.keras on cpu:0 with XLA, keras", 4, 100.0, 80, (1, 0, 2), 0.1, 0.2)


class Stand:
    """Answers with a candidate and a note, or with metrics; keeps what it was asked."""

    asked: ClassVar[list[BenchRequest | HeldOutRequest]] = []
    metrics: ClassVar[list[dict] | Exception] = []

    def __init__(self, request):
        self.asked.append(request)
        self._request = request

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def result(self, on_part, on_doing):
        if isinstance(self._request, HeldOutRequest):
            if isinstance(self.metrics, Exception):
                raise self.metrics
            return MetricsOfModels(tuple(self.metrics), ("a note on metrics",))
        on_part(ExamplesDone(1, 2))
        if self._request.is_live:
            on_part(WINDOW)
        on_part(CANDIDATE)
        return BenchNotes(("a note",))


@pytest.fixture
def query(monkeypatch):
    monkeypatch.setattr(inference_bench, "EngineCall", Stand)
    monkeypatch.setattr(Stand, "asked", [])
    monkeypatch.setattr(Stand, "metrics", [])
    return Stand


def measured(models, options) -> tuple[list[Candidate], tuple[str, ...]]:
    """The candidates, and the notes."""
    parts = []
    notes = measure_models(models, options, parts.append)
    return [each for each in parts if isinstance(each, Candidate)], notes


def test_each_model_has_a_process_of_its_own_and_candidates_and_notes_come_back(query) -> None:
    parts = []
    plan = Plan(model="mlp", data="digits")
    models = [ModelFile(Path("/m.onnx")), plan]
    notes = measure_models(models, BenchOptions(scenario="offline", metrics=False), parts.append)
    assert (parts, notes) == ([ExamplesDone(1, 2), CANDIDATE] * 2, ("a note",))
    assert [type(request) for request in query.asked] == [BenchRequest] * 2
    assert [request.models for request in query.asked] == [
        (BenchedModel("m.onnx", file=Path("/m.onnx")),),
        (BenchedModel("mlp", ModelReference.of(plan)),),
    ]
    options = query.asked[1].options
    assert (options.scenario, options.batch_sizes, options.xla) == ("offline", None, "both")


@pytest.mark.parametrize(
    ("devices", "hides_gpus"), [((), False), (("cpu",), True), (("cpu:0", "gpu"), False), (("gpu:1",), False)]
)
def test_gpus_are_hidden_unless_they_are_measured(query, devices: tuple[str, ...], hides_gpus: bool) -> None:
    measure_models([ModelFile(Path("/m.onnx"))], BenchOptions(devices=devices))
    (request,) = query.asked
    environment = request.environment
    assert (environment == ON_THE_CPU) is hides_gpus
    assert ("CUDA_VISIBLE_DEVICES" in environment) is hides_gpus


def test_a_run_without_a_checkpoint_starts_no_engine(query) -> None:
    with pytest.raises(RunError, match="has no checkpoint"):
        measure_models([create(Plan())], BenchOptions())
    assert not query.asked


METRICS = HeldOutMetrics(values={"accuracy": 0.75, "loss": 0.5}, split="test", examples=4, source="a", fingerprint="")


def described(path: Path, name: object) -> Path:
    """A model's file with the file beside it, which names its run."""
    path.write_text("")
    sidecar_of(path).write_text(json.dumps({"name": name}))
    return path


def test_metrics_are_asked_for_once_and_belong_to_the_precision_of_a_model(query, monkeypatch, tmp_path: Path) -> None:
    run = create(Plan(model="mlp", data="digits"))
    monkeypatch.setattr(model_reference, "check_checkpoint", lambda _: None)
    other = create(Plan(model="mlp", data="digits"))
    files = [described(tmp_path / "a.tflite", run.name), described(tmp_path / "b.onnx", other.name)]
    query.metrics = [{"": METRICS}, {}, {"": replace(METRICS, examples=5)}, {"float32": METRICS}]
    models = [*map(ModelFile, files), ModelFile(tmp_path / "unknown.onnx"), run]
    found, notes = measured(models, BenchOptions())
    assert notes == ("a note on metrics", "a note")
    request, *benches = query.asked
    assert [each.reference.directory for each in request.models] == [run, other, run, run]
    assert [type(each) for each in benches] == [BenchRequest] * 4
    metrics = [each.metrics for each in found]
    assert metrics[0] == METRICS
    assert [each and each.examples for each in metrics] == [4, None, 5, None]  # the last one measured no float32


def test_a_file_that_does_not_tell_has_the_run_of_another_file(query, tmp_path: Path) -> None:
    run = create(Plan(model="mlp", data="digits"))
    files = [
        tmp_path / "m.keras",
        described(tmp_path / "lost.onnx", "lost"),
        described(tmp_path / "a.tflite", run.name),
    ]
    query.metrics = [{}] * 3
    measure_models(list(map(ModelFile, files)), BenchOptions())
    request, *_ = query.asked
    common = [BenchedModel(file.name, ModelReference(run), file) for file in files]
    assert request.models == (replace(common[0], is_foreign=True), replace(common[1], is_foreign=True), common[2])


@pytest.mark.parametrize("name", ["k3fp", "../k3fp", "..", "k" * 300, "k\0", 3, None])
def test_without_any_data_nobody_is_asked_for_metrics(query, tmp_path: Path, name: object) -> None:
    measure_models([ModelFile(described(tmp_path / "m.tflite", name))], BenchOptions())
    assert [type(each) for each in query.asked] == [BenchRequest]


def test_models_are_measured_where_metrics_fail(query) -> None:
    query.metrics = RunError("the engine exited")
    found, notes = measured([Plan(model="mlp", data="digits")], BenchOptions())
    assert notes == ("no metrics: the engine exited", "a note")
    assert found == [CANDIDATE]


def test_windows_come_only_if_somebody_watches(query) -> None:
    parts = []
    InferenceBench([ModelFile(Path("/m.onnx"))], BenchOptions()).measure(parts.append, is_live=True)
    measure_models([ModelFile(Path("/m.onnx"))], BenchOptions(), parts.append)
    assert [each for each in parts if each != ExamplesDone(1, 2)] == [WINDOW, CANDIDATE, CANDIDATE]
    assert [request.is_live for request in query.asked] == [True, False]


def test_once_cancelled_no_other_model_is_measured(query, monkeypatch) -> None:
    cancelled = []
    monkeypatch.setattr(Stand, "cancel", lambda self: cancelled.append(self), raising=False)
    measuring = InferenceBench([ModelFile(Path("/m.onnx")), ModelFile(Path("/n.onnx"))], BenchOptions())
    found = []
    measuring.measure(lambda part: isinstance(part, Candidate) and (found.append(part), measuring.cancel()))
    assert (found, len(cancelled)) == ([CANDIDATE], 1)


def test_files_of_the_same_name_are_told_apart(query) -> None:
    measure_models([ModelFile(Path("/old/m.onnx")), ModelFile(Path("/new/m.onnx"))], BenchOptions())
    assert [request.models[0].name for request in query.asked] == ["old/m.onnx", "new/m.onnx"]


def test_notes_are_known_after_an_error(query, monkeypatch) -> None:
    def fail(self, on_part, on_doing):
        if self._request.models[0].name == "bad.onnx":
            raise RunError("the engine exited")
        return BenchNotes(("a note",))

    monkeypatch.setattr(Stand, "result", fail)
    measuring = InferenceBench([ModelFile(Path("/m.onnx")), ModelFile(Path("/bad.onnx"))], BenchOptions())
    with pytest.raises(RunError, match="exited"):
        measuring.measure()
    assert measuring.notes == ("a note",)
