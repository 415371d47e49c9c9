import json
import os
import signal

import pytest

from accel_engine.devices.device_types import Device, Inventory
from accel_engine.measure.trial_memory import MemoryBudget
from accel_engine.plan import Plan
from accel_engine.race.race import Race
from accel_tui.cli import demo
from engine.race.stand_ins import GPUS, Behaviour, StandInTrials, no_meters

CONFIGURATIONS = ["this plan", "mirrored on 2 virtual CPUs", "XLA", "mixed_bfloat16", "1 thread"]


@pytest.fixture(autouse=True)
def trials(home, monkeypatch):
    """Stand-ins whose XLA is twice as fast, and whose bfloat16 is half as fast."""
    trials = StandInTrials(
        {"xla=on": Behaviour(2560.0 * 2), "precision=mixed_bfloat16": Behaviour(1280.0), "": Behaviour(2560.0)}
    )

    def race(*arguments):
        return Race(
            *arguments, make_trials=trials, make_meters=no_meters, budget=MemoryBudget(available=lambda: 1 << 50)
        )

    monkeypatch.setattr(demo, "Race", race)
    monkeypatch.setattr(demo, "require_installation", lambda: None)
    monkeypatch.setattr(demo, "detect", lambda: Inventory((Device("cpu:0", "cpu", "A CPU", cores=2),)))
    return trials


def test_every_configuration_is_measured_and_shown(run_command, trials) -> None:
    result = run_command("demo --seconds 2")
    assert result.status == 0
    assert result.lines[0].startswith("Training mlp on synthetic images, batch size 256, in 5 configurations")
    assert "No GPU or TPU was found" in result.out
    assert max(map(len, result.lines)) <= 80
    table = [line for line in result.lines if line.startswith(tuple(CONFIGURATIONS))]
    assert [line.split()[0] for line in table[:2]] == ["XLA", "this"]  # the fastest first
    assert "2.00x" in table[0]
    assert "The fastest is XLA, 2 times as fast as this plan: --xla on" in result.out
    assert "mixed_bfloat16 can be slower: a processor without bfloat16" in result.out
    assert not any(process.is_open for process in trials.processes)


def test_as_json(run_command) -> None:
    found = [json.loads(line) for line in run_command("demo --seconds 2 --json").lines]
    assert [each["configuration"] for each in found] == CONFIGURATIONS
    assert [each["speedup"] for each in found] == pytest.approx([1, 1, 2, 0.5, 1])
    assert found[0]["steps_per_second"] == pytest.approx(10.0)
    assert found[2]["plan"]["xla"] == "on"
    assert {each["problem"] for each in found} == {""}


def test_a_configuration_that_fails_says_why_and_the_others_go_on(run_command, trials) -> None:
    trials.behaviours["xla=on"] = Behaviour(problem="no such instruction")
    result = run_command("demo --seconds 2")
    assert result.status == 0
    assert "XLA: failed: no such instruction" in result.out


def test_nothing_measured_is_a_failure(run_command, trials) -> None:
    trials.behaviours.clear()
    trials.behaviours[""] = Behaviour(problem="no memory")
    result = run_command("demo --seconds 2")
    assert result.status == 1
    assert "Nothing was measured." in result.out


def test_ctrl_c_shows_the_results_so_far(run_command, trials) -> None:
    def interrupt(plan: Plan) -> None:
        if plan.precision == "mixed_bfloat16":
            os.kill(os.getpid(), signal.SIGINT)

    trials.on_turn = interrupt
    result = run_command("demo --seconds 2")
    assert result.status == 130
    assert "The fastest is XLA" in result.out
    assert "Not measured: mixed_bfloat16, 1 thread." in result.out
    assert not any(process.is_open for process in trials.processes)


def test_a_gpu_trains_a_larger_model(run_command, monkeypatch) -> None:
    monkeypatch.setattr(demo, "detect", lambda: Inventory(GPUS))
    found = [json.loads(line) for line in run_command("demo --seconds 2 --json").lines]
    assert {each["plan"]["model"] for each in found} == {"resnet20"}
    assert {"cpu:0", "mirrored on 2 GPUs", "mixed_float16"} <= {each["configuration"] for each in found}


@pytest.mark.parametrize("wrong", ["0", "nan", "two"])
def test_wrong_seconds(run_command, wrong) -> None:
    assert run_command(f"demo --seconds {wrong}").status == 2
