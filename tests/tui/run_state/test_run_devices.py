"""The devices of a run."""

from dataclasses import replace
from pathlib import Path

from accel_engine.devices.device_types import Device, Inventory, Reading, Sample
from accel_engine.events import DevicesFound, Outcome, RunEnded, TensorFlowDevice
from accel_engine.run import RunInfo, Status, Update
from accel_tui.run_state.fold_events import apply_update
from accel_tui.run_state.run_devices import NOT_SAMPLED, inventory_of, meters_of
from accel_tui.run_state.state import RunState
from accel_tui.widgets.device_lines import device_line

HERE = Inventory((Device("cpu:0", "cpu", "A processor", cores=8), Device("gpu:0", "gpu", "A card")))


def found(*devices: tuple[str, str, str]) -> DevicesFound:
    return DevicesFound(
        time=0.0,
        devices=tuple(
            TensorFlowDevice(name, name[:3].lower(), description, device) for name, description, device in devices
        ),
        strategy="Strategy",
    )


def read(*devices: str) -> tuple[Sample, ...]:
    return tuple(Sample(0.0, device, {"utilization": Reading(1.0, "%")}) for device in devices)


def test_before_the_run_says_anything_it_is_this_machines() -> None:
    assert inventory_of(RunState(), HERE) is HERE
    assert inventory_of(RunState(), None) is None


def test_those_that_are_trained_on_come_first_with_what_this_machine_knows_of_them() -> None:
    state = apply_update(RunState(), Update((found(("GPU:0", "card", "gpu:0")),), (), read("cpu:0", "gpu:0", "gpu:1")))
    inventory = inventory_of(state, HERE)
    assert inventory
    assert [device.id for device in inventory.devices] == ["gpu:0", "cpu:0", "gpu:1"]
    assert inventory.devices[0].name == "A card"


def test_another_machines_are_called_what_tensorflow_calls_them() -> None:
    state = apply_update(RunState(), Update((found(("CPU:0", "EPYC", "cpu:0"), ("CPU:1", "EPYC", "cpu:0")),)))
    assert inventory_of(state, None) == Inventory((Device("cpu:0", "cpu", "EPYC"),))


def test_devices_are_in_the_order_of_their_numbers() -> None:
    state = apply_update(RunState(), Update((), (), read("gpu:10", "gpu:2", "cpu:0")))
    inventory = inventory_of(state, None)
    assert inventory
    assert [device.id for device in inventory.devices] == ["cpu:0", "gpu:2", "gpu:10"]


def test_an_ended_run_awaits_no_readings_of_devices_that_it_has_not_sampled() -> None:
    state = apply_update(RunState(), Update((), (), read("cpu:0")))
    assert meters_of(state, HERE).keys() == {"cpu:0"}
    ended = RunEnded(time=1.0, outcome=Outcome.FINISHED, steps=1, epochs=0, seconds=1.0)
    info = RunInfo("k3fp", Path("k3fp"), None, {}, 0.0, "h", 1, Status.FINISHED)
    state = replace(state, info=info, ended=ended)
    meters = meters_of(state, HERE)
    assert meters["cpu:0"] is state.meters["cpu:0"]
    assert meters["gpu:0"].reading("utilization").reason == NOT_SAMPLED
    assert device_line(HERE.devices[1], meters["gpu:0"], 80, 20).plain.endswith(NOT_SAMPLED)
    assert inventory_of(replace(state, meters={}), None) == Inventory(())
