"""The estimate of a plan that is not trained."""

import json
from typing import Any

import pytest

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device, Inventory
from accel_engine.errors import FieldValue, RunError
from accel_engine.plan import SPECS, Plan
from accel_engine.requests.describe_model import Description, ModelRequest
from accel_engine.run import create
from accel_tui.cli import chosen_plan, estimate
from accel_tui.plan import memory_text

MIB, GIB = 1 << 20, 1 << 30
SMALL = Description(1000, 900, 2 * MIB, 2 * MIB, operations=100, layers=4, input_shape=(8, 8, 1), classes=10)


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that an engine is asked about, instead of starting one."""
    asked: list[Plan] = []

    def describe(request: ModelRequest) -> Description:
        asked.append(request.plan)
        return SMALL

    monkeypatch.setattr(estimate, "ask", describe)
    monkeypatch.setattr(memory_text, "available_memory", lambda: 8 * GIB)
    return asked


def test_every_field_of_the_plan_has_a_flag(run_command):
    told = "".join(run_command("estimate --help").out.split())
    assert all(str(FieldValue(name)) in told for name in SPECS)


def test_the_steps_the_parameters_and_each_part_of_the_memory_are_shown(run_command, described):
    result = run_command("estimate --epochs 3 --xla off")
    assert result.status == 0
    rows = {line.split("  ")[0].strip(): line.split("  ")[-1].strip() for line in result.lines}
    assert rows["parameters"] == "1,000 in 4 layers"
    assert rows["steps"] == "23 per epoch, 69 total"
    assert (rows["weights"], rows["gradients"], rows["optimizer state"]) == ("3.9 KiB", "3.5 KiB", "7.0 KiB")
    assert rows["activations"] == "256 MiB to 371 MiB"  # 64 times 2 and 2, 64 times 2.8 and 3 MiB
    assert result.lines[-1] == "809 MiB to 1.0 GiB of 8.0 GiB available on this machine: fits"
    assert [plan.model for plan in described] == ["cnn"]  # what auto stands for


def test_a_plan_file_and_options_over_it(run_command, described, tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('model = "mlp"\nbatch_size = 8\nepochs = 2\n')
    assert "359 total" not in (out := run_command(f"estimate {path} --batch-size 16").out)
    assert "90 per epoch, 180 total" in out
    assert [(plan.model, plan.batch_size) for plan in described] == [("mlp", 16)]


def test_a_run_has_a_plan(run_command, described):
    directory = create(Plan(model="mlp", batch_size=8, epochs=2))
    assert "180 per epoch, 540 total" in run_command(f"estimate {directory.name} --epochs 3").out
    assert [(plan.model, plan.epochs) for plan in described] == [("mlp", 3)]


def test_the_cheapest_plan_that_fits_is_named(run_command, described, monkeypatch):
    monkeypatch.setattr(memory_text, "available_memory", lambda: 800 * MIB)
    result = run_command("estimate --xla off")
    assert result.status == 0
    assert result.lines[-1].startswith("809 MiB to 1.0 GiB does not fit in the 800 MiB available on this machine: ")
    assert result.lines[-1].endswith("--micro-batches 4 fits (617 MiB to 722 MiB)")
    monkeypatch.setattr(memory_text, "available_memory", lambda: 10 * MIB)
    assert "no change of the batch" in run_command("estimate").lines[-1]


def test_json_is_one_object(run_command, described, monkeypatch):
    monkeypatch.setattr(memory_text, "available_memory", lambda: 900 * MIB)
    (line,) = run_command("estimate --xla off --json").lines
    found: dict[str, Any] = json.loads(line)
    assert (found["model"], found["data"], found["parameters"], found["trainable"]) == ("auto", "digits", 1000, 900)
    assert (found["steps_per_epoch"], found["total_steps"], found["per_replica_batch"]) == (23, 230, 64)
    memory = found["memory"]
    assert memory["low"] == sum(part["low"] for part in memory["parts"])
    assert memory["high"] == sum(part["high"] for part in memory["parts"])
    assert {"name": "weights", "low": 4000, "high": 4000} in memory["parts"]
    assert (memory["device"], memory["available"], memory["fits"]) == ("cpu", 900 * MIB, None)
    assert memory["cheapest_change"]["plan"] == {"micro_batches": 2}
    assert memory["cheapest_change"]["options"] == "--micro-batches 2"
    monkeypatch.setattr(memory_text, "available_memory", lambda: 8 * GIB)
    memory = json.loads(run_command("estimate --json").out)["memory"]
    assert (memory["fits"], memory["cheapest_change"]) == (True, None)


def test_a_gpu_has_its_own_memory_and_what_was_not_measured_is_said(run_command, described, monkeypatch):
    gpu = Device("gpu:0", "gpu", "NVIDIA L4", memory=300 * MIB)
    monkeypatch.setattr(chosen_plan, "detect", lambda: Inventory((*detect().devices, gpu)))
    result = run_command("estimate")
    assert result.lines[-2].startswith("256 MiB to 371 MiB may not fit in the 300 MiB of gpu:0: --micro-batches 2 fits")
    assert result.lines[-1].startswith("Without the CUDA context")
    tight = run_command("estimate --memory-limit 0.125 --batch-size 8 --precision float32").lines[-2]
    assert tight.startswith("32.1 MiB to 46.5 MiB of 128 MiB of gpu:0: fits")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--epochs 0", "must be an integer of at least 1"),
        ("--model nonsense", "no such model"),
        ("--micro-batches 7", "must divide the per-replica batch of 64"),
        ("--precision mixed_float16", "far slower than float32 on a CPU"),
        ("--nonsense", "no such option"),
        ("no-such-run", "no runs yet"),
        ("none.toml", "none.toml"),
    ],
)
def test_wrong_usage_and_bad_plans_are_refused_as_by_train(run_command, described, words, told):
    result = run_command(f"estimate {words}")
    assert (result.status, result.out) == (2, "")
    assert told in result.err
    assert not described


def test_all_errors_of_a_plan_file_have_their_lines(run_command, described, tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('model = "mlp"\nepochs = 0\nbatch_sise = 8\n')
    mine, trains = run_command(f"estimate {path}"), run_command(f"train {path}")
    assert mine.status == trains.status == 2
    assert mine.err == trains.err
    assert "plan.toml:2: " in mine.err
    assert "plan.toml:3: " in mine.err


def test_a_model_that_cannot_be_built_ends_with_1(run_command, described, monkeypatch):
    def refuse(_: ModelRequest) -> Description:
        raise RunError("it raises ValueError")

    monkeypatch.setattr(estimate, "ask", refuse)
    result = run_command("estimate")
    assert (result.status, result.out) == (1, "")
    assert "it raises ValueError" in result.err


@pytest.mark.campaign
def test_a_real_engine_describes_a_vocabulary_that_only_the_data_tells(run_command, tmp_path):
    path = tmp_path / "tale.txt"
    path.write_text("once upon a time " * 200)
    result = run_command(f"estimate --data {path} --window 16 --batch-size 8 --json")
    assert result.status == 0, result.err
    found = json.loads(result.out)
    assert found["parameters"] > 100_000
    assert found["steps_per_epoch"] > 1
    assert found["memory"]["low"] > 500 * MIB
