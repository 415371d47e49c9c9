import json

import pytest

from accel_engine import data, models, strategies
from accel_engine.devices.device_types import Device, Inventory


@pytest.fixture(autouse=True)
def one_cpu(monkeypatch):
    monkeypatch.setattr("accel_engine.devices.detect", lambda: Inventory((Device("cpu:0", "cpu", "A processor"),)))


@pytest.mark.parametrize(
    ("command", "catalogue"),
    [("models", models.CATALOGUE), ("data", data.CATALOGUE), ("strategies", strategies.CATALOGUE)],
)
def test_a_catalogue_is_listed_in_80_columns_and_as_json(run_command, command, catalogue):
    result = run_command(command)
    assert result.status == 0
    assert all(len(line) <= 80 for line in result.lines)
    for name, entry in catalogue.items():
        assert any(line.split()[:1] == [name] for line in result.lines)
        assert entry.summary.split()[0] in result.out
    listed = [json.loads(line) for line in run_command(f"{command} --json").lines]
    assert [entry["name"] for entry in listed] == list(catalogue)


def test_models_say_for_which_data_auto_takes_them(run_command):
    lines = run_command("models").lines
    assert next(line for line in lines if line.startswith("tcn")).split()[1] == "sequences"
    assert next(line for line in lines if line.startswith("resnet20")).split()[1] == "The"
    listed = {entry["name"]: entry for entry in map(json.loads, run_command("models --json").lines)}
    assert listed["gpt"]["default_for"] == ["sequence"]
    assert listed["gpt"]["tasks"] == ["sequence"]
    assert listed["lstm"]["default_for"] == []


def test_strategies_say_what_fits_and_why_not(run_command):
    lines = run_command("strategies").lines
    assert next(line for line in lines if line.startswith("default")).split()[1] == "yes"
    assert next(line for line in lines if line.startswith("mirrored")).split()[1] == "no"
    mirrored = strategy(run_command("strategies --json"), "mirrored")
    assert mirrored["fits"] is False
    assert "--virtual-cpus 2" in mirrored["problem"]


def test_strategies_of_a_split_cpu(run_command):
    assert strategy(run_command("strategies --json --virtual-cpus 2"), "mirrored")["fits"] is True


def strategy(result, name):
    return next(entry for entry in map(json.loads, result.lines) if entry["name"] == name)


def test_models_say_what_they_take(run_command):
    listed = {entry["name"]: entry for entry in map(json.loads, run_command("models --json").lines)}
    assert listed["mlp"]["takes"] == "examples of any shape"
