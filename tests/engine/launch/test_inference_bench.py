"""What the engine process is asked, with which devices in sight, and how its parts come back."""

from pathlib import Path
from typing import ClassVar

import pytest

from accel_engine.errors import RunError
from accel_engine.inference.candidate import Candidate
from accel_engine.inference.live_window import LiveWindow
from accel_engine.inference.measurement.percentiles import Percentile
from accel_engine.launch import inference_bench
from accel_engine.launch.engine_query import ON_THE_CPU
from accel_engine.launch.inference_bench import BenchOptions, InferenceBench, ModelFile, bench
from accel_engine.plan import Plan
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
    """Answers with a candidate and a note; keeps what it was asked."""

    asked: ClassVar[list[tuple]] = []

    def __init__(self, *arguments):
        self.asked.append(arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def answer(self, on_progress, on_part):
        on_progress(1, 2)
        if self.asked[-1][1]["live"]:
            on_part({"window": WINDOW.to_values()})
        on_part(CANDIDATE.to_values())
        return {"notes": ["a note"]}


@pytest.fixture
def query(monkeypatch):
    monkeypatch.setattr(inference_bench, "EngineQuery", Query)
    monkeypatch.setattr(Query, "asked", [])
    return Query


def test_each_model_has_a_process_of_its_own_and_candidates_and_notes_come_back(query) -> None:
    found, progress = [], []
    plan = Plan(model="mlp", data="digits")
    models = [ModelFile(Path("/m.onnx")), plan]
    notes = bench(models, BenchOptions(scenario="offline"), found.append, lambda *done: progress.append(done))
    assert (found, notes, progress) == ([CANDIDATE] * 2, ("a note",), [(1, 2)] * 2)
    assert [arguments for arguments, *_ in query.asked] == [("--bench",)] * 2
    requests = [request for _, request, _ in query.asked]
    assert [each["models"] for each in requests] == [[{"file": "/m.onnx"}], [{"plan": plan.to_mapping()}]]
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
