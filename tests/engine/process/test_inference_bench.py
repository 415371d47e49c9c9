"""What the engine process is asked, with which devices in sight, and how its parts come back."""

import json
from pathlib import Path
from typing import ClassVar

import pytest
from accel_engine.process.engine_query import ON_THE_CPU

from accel_engine.errors import RunError
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.encoded_runtime import sidecar_of
from accel_engine.inference.held_out_metrics import HeldOutMetrics
from accel_engine.inference.live_window import LiveWindow
from accel_engine.inference.measurement.percentiles import Percentile
from accel_engine.plan import Plan
from accel_engine.requests import inference_bench
from accel_engine.requests.bench_models import BenchOptions
from accel_engine.process.inference_bench import InferenceBench, ModelFile, bench
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


class Query:
    """Answers with a candidate and a note, or with metrics; keeps what it was asked."""

    asked: ClassVar[list[tuple]] = []
    metrics: ClassVar[list[dict] | Exception] = []

    def __init__(self, *arguments):
        self.asked.append(arguments)
        self._arguments = arguments

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def answer(self, on_progress, on_part=None):
        if self._arguments[0] == ("--held-out-metrics",):
            if isinstance(self.metrics, Exception):
                raise self.metrics
            return {"models": self.metrics, "notes": ["a note on metrics"]}
        on_progress(1, 2)
        if self.asked[-1][1]["live"]:
            on_part({"window": WINDOW.to_values()})
        on_part(CANDIDATE.to_values())
        return {"notes": ["a note"]}


@pytest.fixture
def query(monkeypatch):
    monkeypatch.setattr(inference_bench, "EngineQuery", Query)
    monkeypatch.setattr(Query, "asked", [])
    monkeypatch.setattr(Query, "metrics", [])
    return Query


def test_each_model_has_a_process_of_its_own_and_candidates_and_notes_come_back(query) -> None:
    found, progress = [], []
    plan = Plan(model="mlp", data="digits")
    models = [ModelFile(Path("/m.onnx")), plan]
    notes = bench(
        models, BenchOptions(scenario="offline", metrics=False), found.append, lambda *done: progress.append(done)
    )
    assert (found, notes, progress) == ([CANDIDATE] * 2, ("a note",), [(1, 2)] * 2)
    assert [arguments for arguments, *_ in query.asked] == [("--bench",)] * 2
    requests = [request for _, request, _ in query.asked]
    assert [each["models"] for each in requests] == [
        [{"file": "/m.onnx", "name": "m.onnx"}],
        [{"plan": plan.to_mapping(), "name": "mlp"}],
    ]
    request = requests[1]
    assert (request["scenario"], request["batch_sizes"], request["xla"]) == ("offline", None, (False, True))


@pytest.mark.parametrize(
    ("devices", "hides_gpus"), [((), False), (("cpu",), True), (("cpu:0", "gpu"), False), (("gpu:1",), False)]
)
def test_gpus_are_hidden_unless_they_are_measured(query, devices: tuple[str, ...], hides_gpus: bool) -> None:
    bench([ModelFile(Path("/m.onnx"))], BenchOptions(devices=devices), print)
    ((_, _, environment),) = query.asked
    assert (environment == ON_THE_CPU) is hides_gpus
    assert ("CUDA_VISIBLE_DEVICES" in environment) is hides_gpus


def test_a_run_without_a_checkpoint_starts_no_engine(query) -> None:
    with pytest.raises(RunError, match="has no checkpoint"):
        bench([create(Plan())], BenchOptions(), print)
    assert not query.asked


METRICS = {"values": {"accuracy": 0.75, "loss": 0.5}, "split": "test", "examples": 4, "source": "a", "fingerprint": ""}


def described(path: Path, name: object) -> Path:
    """A model's file with the file beside it, which names its run."""
    path.write_text("")
    sidecar_of(path).write_text(json.dumps({"name": name}))
    return path


def test_metrics_are_asked_for_once_and_belong_to_the_precision_of_a_model(query, monkeypatch, tmp_path: Path) -> None:
    run = create(Plan(model="mlp", data="digits"))
    monkeypatch.setattr(inference_bench, "described", lambda model: {"directory": str(model)})
    other = create(Plan(model="mlp", data="digits"))
    files = [described(tmp_path / "a.tflite", run.name), described(tmp_path / "b.onnx", other.name)]
    query.metrics = [{"": METRICS}, {}, {"": METRICS | {"examples": 5}}, {"float32": METRICS}]
    models = [*map(ModelFile, files), ModelFile(tmp_path / "unknown.onnx"), run]
    found: list[Candidate] = []
    notes = bench(models, BenchOptions(), found.append)
    assert notes == ("a note on metrics", "a note")
    (_, request, _), *benches = query.asked
    assert [each.get("directory") for each in request["models"]] == [str(run), str(other), str(run), str(run)]
    assert [arguments for arguments, *_ in benches] == [("--bench",)] * 4
    metrics = [each.metrics for each in found]
    assert metrics[0] == HeldOutMetrics(**METRICS)
    assert [each and each.examples for each in metrics] == [4, None, 5, None]  # the last one measured no float32
    assert Candidate.from_values(found[0].to_values()) == found[0]


def test_a_file_that_does_not_tell_has_the_run_of_another_file(query, tmp_path: Path) -> None:
    run = create(Plan(model="mlp", data="digits"))
    files = [
        tmp_path / "m.keras",
        described(tmp_path / "lost.onnx", "lost"),
        described(tmp_path / "a.tflite", run.name),
    ]
    query.metrics = [{}] * 3
    bench(list(map(ModelFile, files)), BenchOptions(), print)
    (_, request, _), *_ = query.asked
    common = [{"file": str(file), "directory": str(run), "name": file.name} for file in files]
    assert request["models"] == [{**common[0], "is_foreign": True}, {**common[1], "is_foreign": True}, common[2]]


@pytest.mark.parametrize("name", ["k3fp", "../k3fp", "..", "k" * 300, "k\0", 3, None])
def test_without_any_data_nobody_is_asked_for_metrics(query, tmp_path: Path, name: object) -> None:
    bench([ModelFile(described(tmp_path / "m.tflite", name))], BenchOptions(), print)
    assert [arguments for arguments, *_ in query.asked] == [("--bench",)]


def test_models_are_measured_where_metrics_fail(query) -> None:
    query.metrics = RunError("the engine exited")
    found: list[Candidate] = []
    assert bench([Plan(model="mlp", data="digits")], BenchOptions(), found.append) == (
        "no metrics: the engine exited",
        "a note",
    )
    assert found == [CANDIDATE]


def test_windows_come_only_if_somebody_watches(query) -> None:
    found, windows = [], []
    InferenceBench([ModelFile(Path("/m.onnx"))], BenchOptions()).measure(found.append, on_live=windows.append)
    bench([ModelFile(Path("/m.onnx"))], BenchOptions(), found.append)
    assert (found, windows) == ([CANDIDATE] * 2, [WINDOW])
    assert [request["live"] for _, request, _ in query.asked] == [True, False]


def test_once_cancelled_no_other_model_is_measured(query, monkeypatch) -> None:
    cancelled = []
    monkeypatch.setattr(Query, "cancel", lambda self: cancelled.append(self), raising=False)
    measuring = InferenceBench([ModelFile(Path("/m.onnx")), ModelFile(Path("/n.onnx"))], BenchOptions())
    found = []
    measuring.measure(lambda candidate: (found.append(candidate), measuring.cancel()))
    assert (found, len(cancelled)) == ([CANDIDATE], 1)


def test_files_of_the_same_name_are_told_apart(query) -> None:
    bench([ModelFile(Path("/old/m.onnx")), ModelFile(Path("/new/m.onnx"))], BenchOptions(), print)
    assert [request["models"][0]["name"] for _, request, _ in query.asked] == ["old/m.onnx", "new/m.onnx"]


def test_notes_are_known_after_an_error(query, monkeypatch) -> None:
    def fail(self, on_progress, on_part=None):
        if self._arguments[1]["models"][0]["name"] == "bad.onnx":
            raise RunError("the engine exited")
        return {"notes": ["a note"]}

    monkeypatch.setattr(Query, "answer", fail)
    measuring = InferenceBench([ModelFile(Path("/m.onnx")), ModelFile(Path("/bad.onnx"))], BenchOptions())
    with pytest.raises(RunError, match="exited"):
        measuring.measure(print)
    assert measuring.notes == ("a note",)
