import pytest

from accel_engine.devices.reading import Device
from accel_engine.errors import PlanError
from accel_engine.strategies import CATALOGUE, choose_devices, find, misfit

CPU = Device("cpu:0", "cpu", "A processor", cores=8)
GPUS = (Device("gpu:0", "gpu", "A card"), Device("gpu:1", "gpu", "A card"))


@pytest.mark.parametrize("name", ["one-device", "one_device", "ONE-DEVICE"])
def test_strategies_are_found_however_they_are_written(name: str) -> None:
    assert find(name).name == "one-device"


def test_unknown_strategy_is_refused_with_the_nearest() -> None:
    with pytest.raises(PlanError, match="did you mean mirrored"):
        find("mirored")


@pytest.mark.parametrize(
    ("strategy", "devices", "virtual_cpus", "chosen"),
    [
        ("default", (CPU,), 1, ("cpu:0",)),
        ("default", (CPU, *GPUS), 1, ("gpu:0",)),
        ("default", (CPU, *GPUS), 2, ("cpu:0",)),
        ("one-device", (CPU, *GPUS), 1, ("gpu:0",)),
        ("mirrored", (CPU, *GPUS), 1, ("gpu:0", "gpu:1")),
        ("mirrored", (CPU,), 4, ("cpu:0", "cpu:1", "cpu:2", "cpu:3")),
    ],
)
def test_devices_that_fit_are_chosen_when_none_is_named(
    strategy: str, devices: tuple[Device, ...], virtual_cpus: int, chosen: tuple[str, ...]
) -> None:
    assert choose_devices(strategy, devices, virtual_cpus=virtual_cpus) == chosen
    assert misfit(strategy, devices, virtual_cpus=virtual_cpus) == ""


def test_named_devices_are_taken_in_the_order_they_were_named() -> None:
    assert choose_devices("mirrored", (CPU, *GPUS), ("GPU:1", "gpu:0")) == ("gpu:1", "gpu:0")
    assert choose_devices("one-device", (CPU, *GPUS), ("cpu:0",)) == ("cpu:0",)


@pytest.mark.parametrize(
    ("strategy", "wanted", "told"),
    [
        ("one-device", ("gpu:7",), "gpu:7 is not here; known: cpu:0, gpu:0, gpu:1"),
        ("mirrored", ("cpu:0", "gpu:0"), "of one kind"),
        ("mirrored", ("gpu:0",), "two devices of a kind"),
        ("one-device", ("gpu:0", "gpu:1"), "takes 1"),
    ],
)
def test_devices_that_do_not_fit_are_refused_in_words(strategy: str, wanted: tuple[str, ...], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        choose_devices(strategy, (CPU, *GPUS), wanted)
    assert told in misfit(strategy, (CPU, *GPUS), wanted)


def test_mirrored_on_one_device_says_what_it_needs() -> None:
    assert "--virtual-cpus 2" in misfit("mirrored", (CPU,))


def test_a_device_named_twice_is_refused() -> None:
    with pytest.raises(PlanError, match="twice"):
        choose_devices("mirrored", (CPU, *GPUS), ("gpu:0", "gpu:0"))


def test_every_strategy_says_what_it_is_for_and_what_it_needs() -> None:
    for entry in CATALOGUE.values():
        assert entry.summary
        assert entry.needs
        assert ":" in entry.builder
