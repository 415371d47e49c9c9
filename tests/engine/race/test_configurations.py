import pytest

from accel_engine import network_namespace
from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve_to_train
from accel_engine.race.configuration import ConfigurationKind
from accel_engine.race.configurations import check_raceable, combine, find_configurations
from accel_engine.strategies.cluster_spec import ClusterSpec

from .stand_ins import CPU, GPUS


def configurations_of(plan=None, devices=CPU, kinds=tuple(ConfigurationKind)):
    return find_configurations(resolve_to_train(plan or Plan(), devices).with_chosen_model(), devices, kinds)


def titles(configurations):
    return [configuration.title for configuration in configurations.others]


def test_a_cpu_has_these_configurations() -> None:
    found = configurations_of()
    assert titles(found) == [
        "mirrored on 2 virtual CPUs",
        "XLA",
        "mixed_bfloat16",
        "2 micro-batches",
        "4 micro-batches",
        "rematerialization",
        "1 thread",
        "2 threads",
        "Keras' kernels",
        "batch size 32",
        "batch size 128",
        "batch size 256",
    ]
    assert found.reference.is_reference
    assert found.others[0].options == "--strategy mirrored --virtual-cpus 2"
    assert [configuration.title for configuration in found.others if configuration.changes_training] == titles(found)[
        -3:
    ]


def test_what_the_machine_refuses_is_listed_with_its_reason() -> None:
    refused = {each.configuration.title: each.reason for each in configurations_of().refused}
    assert set(refused) == {"tpu", "pipeline", "central-storage", "multi-worker", "parameter-server", "mixed_float16"}
    assert "slower than float32 on a CPU" in refused["mixed_float16"]
    assert refused["multi-worker"] == "needs TF_CONFIG, a Slurm job started with srun, or --local-workers 2"
    assert "different times" in refused["parameter-server"]
    assert "race with --strategy parameter-server --local-workers N" in refused["parameter-server"]
    without_xla = {each.configuration.title: each.reason for each in configurations_of(Plan(xla="off")).refused}
    assert without_xla["tpu"] == refused["tpu"]
    assert refused["tpu"].startswith("needs a TPU in this machine")


def test_gpus_bring_devices_strategies_and_precisions_and_no_threads(monkeypatch) -> None:
    monkeypatch.setattr(network_namespace, "why_not", lambda: "")
    found = titles(configurations_of(devices=GPUS))
    strategies = {"mirrored on 2 GPUs", "pipeline on 2 GPUs", "central-storage on 2 GPUs", "multi-worker on 2 GPUs"}
    assert {"cpu:0", "mixed_float16"} | strategies <= set(found)
    assert "gpu:0" not in found  # the reference trains on it
    assert not any("thread" in title or "kernels" in title for title in found)


def test_ports_are_opened_only_for_a_plan_that_asks_for_workers(monkeypatch) -> None:
    monkeypatch.setattr(network_namespace, "why_not", lambda: "only Linux has network namespaces")
    refused = {each.configuration.title: each.reason for each in configurations_of(devices=GPUS).refused}
    assert "only Linux has network namespaces" in refused["multi-worker on 2 GPUs"]
    plan = Plan(strategy="parameter-server", local_workers=1)
    assert "multi-worker on 2 GPUs" in titles(configurations_of(plan, GPUS))


def test_workers_are_raced_against_one_process() -> None:
    plan = Plan(strategy="multi-worker", local_workers=2, isolate_workers="on", reduction="ring")
    found = {each.title: each for each in configurations_of(plan).others}
    assert list(found)[:3] == ["cpu:0, one process", "mirrored on 2 virtual CPUs", "mixed_bfloat16"]
    assert found["cpu:0, one process"].plan == Plan(model="cnn", devices=("cpu:0",))
    assert not found["cpu:0, one process"].changes_training
    assert "multi-worker on 2 GPUs" not in titles(configurations_of(plan.replace(reduction="auto"), GPUS))


def test_asynchronous_updates_and_synchronous_ones_train_differently() -> None:
    found = configurations_of(Plan(strategy="parameter-server", local_workers=2))
    other = [each.title for each in found.others if each.other_training == "other updates"]
    assert other == ["cpu:0, one process", "mirrored on 2 virtual CPUs", "multi-worker"]


def test_a_cluster_is_not_raced_from_one_of_its_processes(monkeypatch) -> None:
    cluster = ClusterSpec(("a:1", "b:1"))
    monkeypatch.setenv("TF_CONFIG", cluster.to_tf_config())
    with pytest.raises(PlanError, match=r"unset TF_CONFIG.*--local-workers 2"):
        check_raceable(resolve_to_train(Plan(strategy="multi-worker"), CPU))
    refused = {each.configuration.title: each.reason for each in configurations_of().refused}
    assert "unset TF_CONFIG" in refused["multi-worker"]


def test_a_plan_that_comes_to_the_same_is_no_configuration() -> None:
    plan = Plan(xla="off", precision="float32", threads=1, strategy="one-device", micro_batches=1)
    found = titles(configurations_of(plan))
    assert "1 thread" not in found
    assert "no micro-batches" not in found
    assert "float32" not in found
    assert "cpu:0" not in found
    assert found.count("all threads") == 1
    assert titles(configurations_of(Plan(threads=4))).count("all threads") == 0  # all four, anyhow


def test_a_larger_batch_than_the_data_is_no_configuration() -> None:
    found = [title for title in titles(configurations_of(Plan(batch_size=1024))) if "batch size" in title]
    assert found == ["batch size 512", "batch size 2,048"]  # one batch has all 1,437 examples, and so has 4,096
    assert "batch size 4,096" not in titles(configurations_of(Plan(batch_size=2048)))


def test_the_opposite_of_what_the_plan_says_is_tried() -> None:
    found = configurations_of(Plan(xla="on", remat="on", layer_kernels="off"))
    assert {"no XLA", "no rematerialization"} <= set(titles(found))
    assert "our kernels" not in titles(found)  # XLA compiles the steps, on a CPU without them
    assert "our kernels" in titles(configurations_of(Plan(layer_kernels="off")))
    refused = {each.configuration.title: each.reason for each in found.refused}
    assert "XLA cannot compile a step of several replicas" in refused["mirrored on 2 virtual CPUs"]


def test_micro_batches_that_do_not_divide_the_batch_are_refused() -> None:
    refused = {each.configuration.title: each.reason for each in configurations_of(Plan(batch_size=9)).refused}
    assert refused["2 micro-batches"] == "must divide the per-replica batch of 9"


def test_kinds_can_be_chosen() -> None:
    found = configurations_of(kinds=(ConfigurationKind.XLA, ConfigurationKind.PRECISION))
    assert titles(found) == ["XLA", "mixed_bfloat16"]
    assert [each.configuration.title for each in found.refused] == ["mixed_float16"]


@pytest.mark.parametrize(
    ("winners", "combined"),
    [
        (("XLA", "1 thread"), "--xla on --threads 1"),
        (("1 thread", "2 threads", "XLA"), "--threads 1 --xla on"),  # the faster one of a kind
        (("XLA", "mirrored on 2 virtual CPUs", "1 thread"), "--xla on --threads 1"),  # XLA allows one replica on CPUs
        (("XLA", "batch size 128"), None),  # a batch size changes training
        (("XLA",), None),
    ],
)
def test_winners_are_combined_as_far_as_the_machine_allows(winners, combined) -> None:
    resolved = resolve_to_train(Plan(), CPU)
    by_title = {configuration.title: configuration for configuration in find_configurations(resolved, CPU).others}
    found = combine(resolved, CPU, [by_title[title] for title in winners])
    assert (found.options if found else None) == combined
