import pytest

from accel_engine.devices.reading import Device
from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.strategies import CATALOGUE, find, lay_out, misfit

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
    assert lay_out(Plan(strategy=strategy, virtual_cpus=virtual_cpus), devices).devices == chosen
    assert misfit(strategy, Plan(virtual_cpus=virtual_cpus), devices) == ""


def test_named_devices_are_taken_in_the_order_they_were_named() -> None:
    assert lay_out(Plan(strategy="mirrored", devices=("GPU:1", "gpu:0")), (CPU, *GPUS)).devices == ("gpu:1", "gpu:0")
    assert lay_out(Plan(strategy="one-device", devices=("cpu:0",)), (CPU, *GPUS)).devices == ("cpu:0",)


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
        lay_out(Plan(strategy=strategy, devices=wanted), (CPU, *GPUS))


def test_mirrored_on_one_device_says_what_it_needs() -> None:
    assert "--virtual-cpus 2" in misfit("mirrored", Plan(), (CPU,))


def test_a_device_named_twice_is_refused() -> None:
    with pytest.raises(PlanError, match="twice"):
        lay_out(Plan(strategy="mirrored", devices=("gpu:0", "gpu:0")), (CPU, *GPUS))


def test_every_strategy_says_what_it_is_for_and_what_it_needs() -> None:
    for entry in CATALOGUE.values():
        assert entry.summary
        assert entry.needs
        assert ":" in entry.builder


def test_workers_multiply_the_replicas_of_a_step() -> None:
    plan = Plan(strategy="multi-worker", local_workers=3)
    assert lay_out(plan, (CPU, *GPUS), {}).replicas == 6


def test_many_processes_need_somebody_who_says_which() -> None:
    with pytest.raises(PlanError, match="TF_CONFIG, a Slurm job, or --local-workers 2"):
        lay_out(Plan(strategy="multi-worker"), (CPU,), {})
    config = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}'
    assert lay_out(Plan(strategy="multi-worker"), (CPU,), {"TF_CONFIG": config}).workers == 2
    with pytest.raises(PlanError, match="TF_CONFIG describes the workers already"):
        lay_out(Plan(strategy="multi-worker", local_workers=2), (CPU,), {"TF_CONFIG": config})


def test_workers_are_for_strategies_that_spread_over_processes() -> None:
    with pytest.raises(PlanError, match="unless the strategy is one of multi-worker"):
        lay_out(Plan(local_workers=2), (CPU,), {})


@pytest.mark.parametrize(
    ("strategy", "reduction", "told"),
    [
        ("default", "ring", "must be auto under default"),
        ("mirrored", "ring", "must be auto or nccl or hierarchical-copy or one-device"),
        ("mirrored", "nccl", "for GPUs"),
    ],
)
def test_a_reduction_that_a_strategy_has_not_is_refused(strategy: str, reduction: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        lay_out(Plan(strategy=strategy, reduction=reduction, virtual_cpus=2), (CPU,), {})
