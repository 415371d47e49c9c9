import json
from pathlib import Path

import pytest

from accel_engine.plan import Plan
from accel_engine.requests.evaluate import (
    ClassScores,
    Difference,
    EvaluatedModel,
    Evaluation,
    Measurement,
    MetricDifference,
)

CAT = ClassScores("cat", 12, Measurement(0.5, 0.25, 0.75), Measurement(1.0, 0.7, 1.0), Measurement(2 / 3, 0.4, 0.8))
DOG = ClassScores("dog", 8, Measurement(None, None, None), Measurement(0.0, 0.0, 0.3), Measurement(0.0, 0.0, 0.2))

FIRST = EvaluatedModel(
    "k3fp-a",
    40,
    {"loss": Measurement(0.5, 0.4, 0.6), "accuracy": Measurement(0.9, 0.85, 0.95)},
    (CAT, DOG),
    ("a note",),
    {"accuracy": 0.6},
    "most frequent class: cat",
)
OTHER = EvaluatedModel(
    "m8w3-b", 80, {"loss": Measurement(0.25, 0.2, 0.3), "accuracy": Measurement(0.91, 0.85, 0.96)}, (CAT, DOG), ()
)
DIFFERENCE = Difference(
    "m8w3-b",
    "k3fp-a",
    {
        "loss": MetricDifference(Measurement(-0.25, -0.3, -0.2), 0.001, True),
        "accuracy": MetricDifference(Measurement(0.01, -0.02, 0.04), 0.4, True),
    },
)


@pytest.fixture
def asked(monkeypatch, new_run):
    """A run, and a stand-in for the engine's evaluation; what it was asked is kept."""
    new_run().close()
    requests = []

    def answer(request):
        models = [each.plan or each.directory for each in request.models]
        requests.append((models, request.options))
        differences = (DIFFERENCE,) if len(models) > 1 else ()
        return Evaluation("test", 20, (FIRST, OTHER)[: len(models)], differences)

    monkeypatch.setattr("accel_tui.cli.evaluate.ask", answer)
    return requests


def test_a_model_has_its_metrics_with_intervals_and_its_classes(run_command, asked):
    result = run_command("evaluate last")
    assert (result.status, result.err) == (0, "accel-tui: a note\n")
    assert result.lines[0] == "20 test examples, on the CPU; 95% confidence intervals of 1,000 resamples"
    told = [" ".join(line.split()) for line in result.lines]
    assert "accuracy 0.9000 (0.8500 to 0.9500)" in told
    first = told.index("baseline accuracy 0.6000")
    assert told[first + 1] == "baseline most frequent class: cat"
    assert "cat    12        0.500 (0.25-0.75)  1.000 (0.70-1.00)  0.667 (0.40-0.80)" in result.lines
    assert "dog    8         none               0.000 (0.00-0.30)  0.000 (0.00-0.20)" in result.lines
    assert isinstance(asked[0][0][0], Path)


def test_of_two_models_it_tells_which_is_better_or_that_it_may_be_chance(run_command, asked):
    lines = run_command("evaluate last last --confidence 0.9").lines
    assert any(line.split() == ["METRIC", "k3fp-a", "at", "step", "40", "m8w3-b", "at", "step", "80"] for line in lines)
    assert any(line.startswith("loss") and line.endswith("0.001  better") for line in lines)
    assert any(line.startswith("accuracy") and line.endswith("0.4    may be chance") for line in lines)
    assert asked[0][1].confidence == 0.9


def test_the_last_line_of_json_has_the_metrics(run_command, asked):
    first, last = map(json.loads, run_command("evaluate last last --json").lines)
    assert first["metrics"] == {"loss": 0.5, "accuracy": 0.9}
    assert "differences" not in first
    assert (first["baseline"], first["baseline_name"]) == ({"accuracy": 0.6}, "most frequent class: cat")
    assert last["metrics"] == {"loss": 0.25, "accuracy": 0.91}
    assert last["intervals"]["loss"] == [0.2, 0.3]
    assert (last["than"], last["differences"]["loss"]["p"]) == ("k3fp-a", 0.001)
    assert first["classes"][1]["precision"] is None
    assert asked


@pytest.mark.parametrize("command", ["evaluate {} --data digits", "predict {} x.npz", "bench {} --data digits"])
def test_what_is_no_keras_model_is_refused_with_the_way_to_convert_it(run_command, tmp_path, command):
    (tmp_path / "served" / "1").mkdir(parents=True)
    (tmp_path / "served" / "1" / "saved_model.pb").write_text("")
    for name in ("m.weights.h5", "m.onnx"):
        (tmp_path / name).write_text("")
    reasons = {
        "m.weights.h5": "it has weights without their layers",
        "m.onnx": "an ONNX model has no Keras layers any more: give the run or the FILE.keras",
        "served": "a SavedModel has no Keras layers any more",
    }
    for name, reason in reasons.items():
        if "bench" in command and name != "m.weights.h5":
            continue  # it measures these
        found = run_command(command.format(tmp_path / name))
        assert (found.status, reason in found.err, "model.save('FILE.keras')" in found.err) == (2, True, True)


def test_a_file_needs_data_and_must_be_there(run_command, asked, tmp_path):
    missing = run_command(f"evaluate {tmp_path}/model.keras --data digits")
    assert (missing.status, "no such file" in missing.err) == (2, True)
    (tmp_path / "model.keras").write_text("")
    without = run_command(f"evaluate {tmp_path}/model.keras")
    assert (without.status, "give it with --data" in without.err) == (2, True)
    assert run_command(f"evaluate {tmp_path}/model.keras --data digits").status == 0
    (model,) = asked[0][0]
    assert isinstance(model, Plan)
    assert (model.model, model.data) == (str(tmp_path / "model.keras"), "digits")


def test_intervals_need_resamples_beyond_their_ends(run_command, asked):
    result = run_command("evaluate last --confidence 0.999")
    assert (result.status, "needs --resamples 5000 at least" in result.err, asked) == (2, True, [])


def test_data_that_is_not_there_is_wrong_usage(run_command, asked):
    result = run_command("evaluate last --data nowhere.csv")
    assert (result.status, "no such file" in result.err, asked) == (2, True, [])


@pytest.mark.parametrize("wrong", ["newest", "''"])
def test_a_checkpoint_that_cannot_be_is_wrong_usage(run_command, asked, wrong):
    result = run_command(f"evaluate last --checkpoint {wrong}")
    assert result.status == 2
    assert "neither auto, best, last nor a step" in result.err
    assert not asked


def test_an_empty_device_is_wrong_usage(run_command, asked):
    result = run_command("evaluate last --device ''")
    assert (result.status, "'' must be auto, cpu or such as gpu:0" in result.err, asked) == (2, True, [])
