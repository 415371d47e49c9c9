import json
from pathlib import Path
from typing import Any

import pytest

from accel_engine.devices import installation
from accel_engine.devices.device_types import Device
from accel_engine.devices.installation import Installation
from accel_engine.errors import PlanError, UsageError, join_words
from accel_engine.plan import Plan
from accel_engine.plan.placement import Placement, incompatibility, resolve_placement
from accel_engine.strategies import CATALOGUE, find

CPU = Device("cpu:0", "cpu", "A processor", cores=8)
GPUS = (Device("gpu:0", "gpu", "A card"), Device("gpu:1", "gpu", "A card"))
CHIPS = (Device("tpu:0", "tpu", "TPU v3"), Device("tpu:1", "tpu", "TPU v3"))
TPU = Plan(strategy="tpu")


@pytest.mark.parametrize("name", ["one-device", "one_device", "ONE-DEVICE"])
def test_strategy_names_ignore_case_and_underscores(name: str) -> None:
    assert find(name).name == "one-device"


def test_unknown_strategy_is_rejected_with_a_suggestion() -> None:
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
def test_fitting_devices_are_selected_by_default(
    strategy: str, devices: tuple[Device, ...], virtual_cpus: int, chosen: tuple[str, ...]
) -> None:
    assert resolve_placement(Plan(strategy=strategy, virtual_cpus=virtual_cpus), devices).devices == chosen
    assert incompatibility(strategy, Plan(virtual_cpus=virtual_cpus), devices) == ()


def test_named_devices_keep_their_order() -> None:
    assert resolve_placement(Plan(strategy="mirrored", devices=("GPU:1", "gpu:0")), (CPU, *GPUS)).devices == (
        "gpu:1",
        "gpu:0",
    )
    assert resolve_placement(Plan(strategy="one-device", devices=("cpu:0",)), (CPU, *GPUS)).devices == ("cpu:0",)


@pytest.mark.parametrize(
    ("strategy", "wanted", "told"),
    [
        ("one-device", ("gpu:7",), "no device gpu:7; available: cpu:0, gpu:0, gpu:1"),
        ("mirrored", ("cpu:0", "gpu:0"), "of the same kind"),
        ("mirrored", ("gpu:0",), "two devices of the same kind"),
        ("one-device", ("gpu:0", "gpu:1"), "takes at most 1"),
    ],
)
def test_devices_that_do_not_fit_are_rejected(strategy: str, wanted: tuple[str, ...], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        resolve_placement(Plan(strategy=strategy, devices=wanted), (CPU, *GPUS))


def test_mirrored_on_one_device_is_rejected_with_its_needs() -> None:
    assert "--virtual-cpus 2" in join_words(incompatibility("mirrored", Plan(), (CPU,)))


def test_a_repeated_device_is_rejected() -> None:
    with pytest.raises(PlanError, match="twice"):
        resolve_placement(Plan(strategy="mirrored", devices=("gpu:0", "gpu:0")), (CPU, *GPUS))


def test_every_strategy_has_a_summary_and_needs() -> None:
    for entry in CATALOGUE.values():
        assert entry.summary
        assert entry.needs
        assert ":" in entry.builder


def test_workers_multiply_the_replicas() -> None:
    config = '{"cluster": {"worker": ["a:1", "b:1", "c:1"]}, "task": {"type": "worker", "index": 0}}'
    assert resolve_placement(Plan(strategy="multi-worker"), (CPU, *GPUS), {"TF_CONFIG": config}).replicas == 6
    assert resolve_placement(Plan(strategy="multi-worker", local_workers=3), (CPU,), {}).replicas == 3


def test_strategies_with_processes_need_a_cluster() -> None:
    with pytest.raises(PlanError, match="TF_CONFIG, a Slurm job started with srun, or --local-workers 2"):
        resolve_placement(Plan(strategy="multi-worker"), (CPU,), {})
    config = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}'
    assert resolve_placement(Plan(strategy="multi-worker"), (CPU,), {"TF_CONFIG": config}).workers == 2
    with pytest.raises(PlanError, match="TF_CONFIG describes the workers"):
        resolve_placement(Plan(strategy="multi-worker", local_workers=2), (CPU,), {"TF_CONFIG": config})


def test_local_workers_require_a_strategy_with_processes() -> None:
    with pytest.raises(PlanError, match="unless the strategy is one of multi-worker"):
        resolve_placement(Plan(local_workers=2), (CPU,), {})


def test_xla_is_rejected_where_it_is_not_supported() -> None:
    with pytest.raises(PlanError, match="must be auto or off under central-storage"):
        resolve_placement(Plan(strategy="central-storage", xla="on"), (CPU, *GPUS), {})
    with pytest.raises(PlanError, match="XLA cannot compile a step of several replicas on CPUs"):
        resolve_placement(Plan(strategy="mirrored", virtual_cpus=2, xla="on"), (CPU,), {})
    assert resolve_placement(Plan(strategy="mirrored", xla="on"), (CPU, *GPUS), {}).replicas == len(GPUS)


@pytest.mark.parametrize(
    ("strategy", "reduction", "told"),
    [
        ("default", "ring", "must be auto under default"),
        ("mirrored", "ring", "must be auto or nccl or hierarchical-copy or one-device"),
        ("mirrored", "nccl", "requires GPUs"),
    ],
)
def test_an_unsupported_reduction_is_rejected(strategy: str, reduction: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        resolve_placement(Plan(strategy=strategy, reduction=reduction, virtual_cpus=2), (CPU,), {})


def test_a_reduction_that_leaves_out_a_device_is_rejected() -> None:
    plan = Plan(strategy="mirrored", reduction="hierarchical-copy", virtual_cpus=3)
    with pytest.raises(PlanError, match="leaves out the gradients of the last of 3 devices: use an even number, or"):
        resolve_placement(plan, (CPU,), {})
    assert resolve_placement(plan.replace(virtual_cpus=4), (CPU,), {}).replicas == 4


@pytest.fixture
def for_tpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed ``tensorflow-tpu``."""
    monkeypatch.setattr(installation, "find_installation", lambda: Installation("tensorflow-tpu", "2.20.0"))


@pytest.mark.usefixtures("for_tpus")
def test_local_chips_have_a_replica_per_core() -> None:
    placement = resolve_placement(TPU, (CPU, *CHIPS), {})
    assert placement == Placement(("tpu:0", "tpu:1"), replicas_per_device=2)
    assert placement.replicas == 4
    assert resolve_placement(TPU, (CPU, Device("tpu:0", "tpu", "TPU v4")), {}).replicas == 1


@pytest.mark.usefixtures("for_tpus")
@pytest.mark.parametrize(
    ("tpu", "environment"),
    [("local", {}), ("", {"TPU_NAME": "local"}), ("local", {"COLAB_TPU_ADDR": "10.0.0.2:8470"})],
)
def test_an_undetected_local_tpu_can_be_set(tpu: str, environment: dict[str, str]) -> None:
    placement = resolve_placement(TPU.replace(tpu=tpu), (CPU,), environment)
    assert (placement.devices, placement.replicas) == ((), None)


@pytest.mark.parametrize(
    ("tpu", "environment", "target"),
    [
        ("grpc://10.0.0.2:8470", {"TPU_NAME": "other"}, "grpc://10.0.0.2:8470"),
        ("my-tpu", {}, "my-tpu"),
        ("", {"COLAB_TPU_ADDR": "10.0.0.2:8470", "TPU_NAME": "other"}, "grpc://10.0.0.2:8470"),
        ("", {"TPU_NAME": "other"}, "other"),
    ],
)
def test_replicas_of_a_remote_tpu_are_unknown(tpu: str, environment: dict[str, str], target: str) -> None:
    placement = resolve_placement(TPU.replace(tpu=tpu), (CPU,), environment)
    assert (placement.remote_tpu, placement.replicas) == (target, None)


def test_tpu_needs_a_chip_or_an_endpoint() -> None:
    with pytest.raises(PlanError, match="a TPU in this machine, or one set with --tpu, COLAB_TPU_ADDR or TPU_NAME"):
        resolve_placement(TPU, (CPU,), {})


def test_plain_tensorflow_cannot_use_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_installation", lambda: Installation("tensorflow-cpu", "2.21.0"))
    for plan, devices in ((TPU, CHIPS), (TPU.replace(tpu="local"), ())):
        with pytest.raises(PlanError, match=r"tensorflow-cpu 2\.21\.0 has no TPU support: .* pip install"):
            resolve_placement(plan, (CPU, *devices), {})
    assert resolve_placement(TPU.replace(tpu="grpc://10.0.0.2"), (CPU,), {}).remote_tpu == "grpc://10.0.0.2:8470"


def test_the_tensorflow_of_a_tpu_vm_may_use_chips(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is named as the one for CPUs and GPUs; the image has libtpu beside it."""
    monkeypatch.setattr(installation, "find_installation", lambda: Installation("tensorflow", "2.18.0"))
    with pytest.raises(PlanError, match="has no TPU support"):
        resolve_placement(TPU, (CPU, *CHIPS), {})
    library = tmp_path / "libtpu.so"
    library.touch()
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(library))
    assert resolve_placement(TPU, (CPU, *CHIPS), {}).kind == "tpu"


def test_an_invalid_endpoint_is_rejected_with_its_source() -> None:
    with pytest.raises(PlanError, match="--tpu: 'http://x' is not an address"):
        resolve_placement(TPU.replace(tpu="http://x"), (CPU,), {})
    with pytest.raises(UsageError, match=r"COLAB_TPU_ADDR: .* is not an address"):
        resolve_placement(TPU, (CPU,), {"COLAB_TPU_ADDR": "a b"})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"devices": ("tpu:0",)}, "devices"),
        ({"xla": "off"}, "xla"),
        ({"precision": "mixed_float16"}, "precision"),
        ({"threads": 1}, "threads"),
        ({"reduction": "ring"}, "reduction"),
        ({"local_workers": 2}, "local_workers"),
    ],
)
def test_unsupported_options_of_a_tpu_are_rejected(changes: dict[str, object], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        resolve_placement(TPU.replace(tpu="grpc://10.0.0.2", **changes), (CPU,), {})
    assert caught.value.field == field


def test_chips_are_selected_only_for_the_tpu_strategy() -> None:
    assert resolve_placement(Plan(), (CPU, *CHIPS), {}).devices == ("cpu:0",)
    with pytest.raises(PlanError, match="--strategy tpu"):
        resolve_placement(Plan(devices=("tpu:0",)), (CPU, *CHIPS), {})


def test_a_tpu_with_another_strategy_is_rejected() -> None:
    with pytest.raises(PlanError, match="requires --strategy tpu"):
        resolve_placement(Plan(tpu="local"), (CPU,), {})
    assert incompatibility("default", TPU.replace(tpu="10.0.0.2"), (CPU,)) == ()
    assert incompatibility("tpu", Plan(tpu="10.0.0.2"), (CPU,)) == ()


def test_automatic_precision_depends_on_the_strategy() -> None:
    assert Plan().policy == "float32"
    assert TPU.policy == "mixed_bfloat16"
    assert TPU.replace(precision="float32").policy == "float32"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"devices": ("cpu:0",)},
        {"strategy": "one-device"},
        {"strategy": "mirrored", "virtual_cpus": 2},
        {"strategy": "central-storage", "virtual_cpus": 2},
        {"strategy": "multi-worker", "local_workers": 2},
        {"strategy": "parameter-server", "local_workers": 1},
    ],
)
def test_float16_is_rejected_on_a_cpu_unless_forced(changes: dict[str, Any]) -> None:
    plan = Plan(precision="mixed_float16", **changes)
    with pytest.raises(PlanError, match=r"far slower than float32 on a CPU.* --force on") as caught:
        resolve_placement(plan, (CPU,), {})
    assert caught.value.field == "precision"
    forced = resolve_placement(plan.replace(force="on"), (CPU,), {})
    assert forced == resolve_placement(plan.replace(precision="mixed_bfloat16"), (CPU,), {})


def test_float16_is_allowed_on_a_gpu() -> None:
    assert resolve_placement(Plan(precision="mixed_float16"), (CPU, *GPUS), {}).devices == ("gpu:0",)
    with pytest.raises(PlanError, match="far slower"):
        resolve_placement(Plan(precision="mixed_float16", devices=("cpu:0",)), (CPU, *GPUS), {})


def test_threads_are_those_of_a_cpu_that_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(threads=1)
    for cpu in (plan, plan.replace(strategy="multi-worker", local_workers=2), plan.replace(devices=("cpu:0",))):
        assert resolve_placement(cpu, (CPU,), {}).devices == ("cpu:0",)
    assert resolve_placement(plan.replace(devices=("cpu:0",)), (CPU, *GPUS), {}).devices == ("cpu:0",)
    for gpu in (plan, plan.replace(strategy="parameter-server", local_workers=2)):
        with pytest.raises(
            PlanError, match=r"has no effect on gpu:0, .* use auto, or train on --devices cpu:0"
        ) as caught:
            resolve_placement(gpu, (CPU, *GPUS), {})
        assert caught.value.field == "threads"


def test_coordinators_do_not_check_the_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    plan = Plan(strategy="parameter-server", precision="mixed_float16")

    def lay_out_as(role: str) -> Placement:
        config = json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}})
        return resolve_placement(plan, (CPU,), {"TF_CONFIG": config})

    assert lay_out_as("chief").devices == ("cpu:0",)
    with pytest.raises(PlanError, match="far slower"):
        lay_out_as("worker")


SERVED = Plan(strategy="parameter-server")


def tf_config(role: str, **cluster: list[str]) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}})}


@pytest.mark.parametrize("workers", [1, 2])
def test_each_worker_of_a_coordinator_runs_its_own_steps(workers: int) -> None:
    placement = resolve_placement(SERVED.replace(local_workers=workers), (CPU, *GPUS), {})
    assert (placement.devices, placement.replicas) == (("gpu:0",), 1)
    cluster = {"chief": ["a:1"], "ps": ["a:2"], "worker": ["b:1", "b:2", "b:3"][:workers]}
    assert resolve_placement(SERVED, (CPU,), tf_config("chief", **cluster)).replicas == 1


@pytest.mark.parametrize(
    ("plan", "role", "cluster", "told"),
    [
        (SERVED, "", {}, r"needs TF_CONFIG with a chief, workers and parameter servers \(ps\), or --local-workers 1"),
        (SERVED, "worker", {"worker": ["a:1", "b:1"]}, "TF_CONFIG describes a different cluster"),
        (SERVED, "worker", {"worker": ["a:1"], "ps": ["b:1"]}, "TF_CONFIG describes a different cluster"),
        (SERVED, "chief", {"chief": ["a:1"], "ps": ["b:1"]}, "needs TF_CONFIG with a chief, workers"),
        (
            SERVED,
            "evaluator",
            {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"], "evaluator": ["d:1"]},
            "the chief validates",
        ),
        (
            Plan(strategy="multi-worker"),
            "chief",
            {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]},
            "TF_CONFIG has parameter servers: use parameter-server",
        ),
        (SERVED.replace(xla="on", local_workers=1), "", {}, "must be auto or off under parameter-server"),
    ],
)
def test_a_cluster_of_another_strategy_is_rejected(
    plan: Plan, role: str, cluster: dict[str, list[str]], told: str
) -> None:
    with pytest.raises(PlanError, match=told):
        resolve_placement(plan, (CPU,), tf_config(role, **cluster) if cluster else {})


@pytest.mark.parametrize(
    ("strategy", "workers", "index", "devices"),
    [
        ("multi-worker", 2, None, ("gpu:0",)),
        ("multi-worker", 2, 1, ("gpu:1",)),
        ("multi-worker", 1, None, ("gpu:0", "gpu:1")),
        ("parameter-server", 2, None, ("gpu:0",)),
        ("parameter-server", 2, 1, ("gpu:1",)),
    ],
)
def test_local_workers_divide_the_gpus(
    strategy: str, workers: int, index: int | None, devices: tuple[str, ...]
) -> None:
    environment = {}
    if index is not None:
        spec = {"worker": [f"127.0.0.1:{port}" for port in range(1, workers + 1)]}
        if strategy == "parameter-server":
            spec |= {"chief": ["127.0.0.1:8"], "ps": ["127.0.0.1:9"]}
        config = json.dumps({"cluster": spec, "task": {"type": "worker", "index": index}})
        environment = {"TF_CONFIG": config, "ACCEL_TUI_LOCAL_WORKERS": "1"}
    plan = Plan(strategy=strategy, local_workers=workers)
    assert resolve_placement(plan, (CPU, *GPUS), environment).devices == devices
    assert resolve_placement(plan.replace(devices=("cpu:0",)), (CPU, *GPUS), environment).devices == ("cpu:0",)


@pytest.mark.parametrize("role", ["chief", "ps"])
@pytest.mark.parametrize("wanted", [(), ("gpu:1",), ("gpu:5",)])
def test_coordinators_and_parameter_servers_have_no_gpu(role: str, wanted: tuple[str, ...]) -> None:
    environment = tf_config(role, chief=["a:1"], ps=["b:1"], worker=["c:1"])
    for local in (0, 1):
        plan = SERVED.replace(devices=wanted, local_workers=local)
        here = environment | ({"ACCEL_TUI_LOCAL_WORKERS": "1"} if local else {})
        assert resolve_placement(plan, (CPU, *GPUS), here).devices == ("cpu:0",)


def test_gpus_that_cannot_be_divided_evenly_are_rejected() -> None:
    with pytest.raises(PlanError, match="must divide 2 GPUs evenly, or train on --devices cpu:0"):
        resolve_placement(Plan(strategy="multi-worker", local_workers=3), (CPU, *GPUS), {})
