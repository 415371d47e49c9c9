import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accel_engine import data
from accel_engine.data.structure import ArraySpec, Batch
from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import ModelSize
from accel_engine.plan.memory_estimate import (
    DATA,
    GRAPH,
    LARGEST,
    OPERATION,
    SAVED,
    STATE_COPIES,
    TENSORFLOW,
    UNTRACED,
    XLA,
    XLA_OPERATION,
    MemoryEstimate,
    MemoryPart,
    Training,
    data_bytes,
    estimate_memory,
)
from accel_engine.plan.placement import Placement

SIZE = ModelSize(110, 100, saved=350, largest=400, remat_share=0.2, operations=40)
ON_CPU, ON_GPU = Placement(("cpu:0",)), Placement(("gpu:0",), device_memory=1 << 30)
GIB = 1 << 30


def parts(plan: Plan | None = None, placement: Placement = ON_CPU, **changes: Any) -> dict[str, tuple[int, int]]:
    training = replace(Training(plan or Plan(), SIZE, 8, placement), **changes)
    return {part.name: (part.low, part.high) for part in estimate_memory(training).parts}


def both(nbytes: int) -> tuple[int, int]:
    return nbytes, nbytes


def test_weights_gradients_and_optimizer_state_are_exact() -> None:
    found = parts(Plan(ema_momentum=0.9))
    assert found["weights"] == both(4 * 110)
    assert found["gradients"] == both(4 * 100)
    assert found["optimizer state"] == both(4 * 100 * 3)
    assert parts(Plan(optimizer="sgd"))["optimizer state"] == both(0)


def test_activations_grow_with_the_batch_and_the_largest_one() -> None:
    expected = tuple(round(saved * 8 * 350 + more * 8 * 400) for saved, more in zip(SAVED, LARGEST, strict=True))
    assert parts()["activations"] == expected
    assert parts(per_replica_batch=80)["activations"][0] == 10 * expected[0]


def test_only_one_micro_batch_has_activations_and_gradients_are_accumulated() -> None:
    found = parts(Plan(micro_batches=4))
    assert found["activations"] == parts(per_replica_batch=2)["activations"]
    assert found["gradients"] == both(2 * 4 * 100)


def test_mixed_precision_halves_activations_and_adds_a_copy_of_the_weights() -> None:
    found = parts(Plan(precision="mixed_bfloat16"))
    assert found["activations"][0] == parts()["activations"][0] // 2
    assert found["weights"] == both((4 + 2) * 110)


def test_rematerialization_saves_fewer_activations() -> None:
    low, high = parts(Plan(remat="on"))["activations"]
    assert low == round(SAVED[0] * 0.2 * 8 * 350 + LARGEST[0] * 8 * 400)
    assert high == round(SAVED[1] * 0.2 * 8 * 350 + LARGEST[1] * 8 * 400)


NEEDED = 4 * 110 + 4 * 100 * 3 + 8 * 4 * 90
"""Bytes of a step with 90 activations of an example, without rematerialization."""


@pytest.mark.parametrize(
    ("plan", "placement", "memory", "rematerializes"),
    [
        (Plan(), ON_GPU, NEEDED, False),
        (Plan(), ON_GPU, NEEDED - 1, True),
        (Plan(), ON_GPU, None, False),
        (Plan(remat="off"), ON_GPU, 1, False),
        (Plan(remat="on"), ON_GPU, GIB, True),
        (Plan(strategy="parameter-server"), ON_GPU, 1, False),
        (Plan(virtual_cpus=2), Placement(("cpu:0", "cpu:0")), 2 * NEEDED, False),
        (Plan(virtual_cpus=2), Placement(("cpu:0", "cpu:0")), 2 * NEEDED - 2, True),
    ],
)
def test_auto_rematerializes_where_a_step_may_not_fit(
    plan: Plan, placement: Placement, memory: int | None, rematerializes: bool
) -> None:
    size = replace(SIZE, auto_activations=90)
    training = Training(plan, size, 8, placement, memory=memory)
    assert training.rematerializes is rematerializes
    assert training.saved_share == ((0.2, 0.2) if rematerializes else (1.0, 1.0))
    assert not replace(training, size=replace(size, remat_share=0.8)).rematerializes or plan.remat == "on"


@pytest.mark.parametrize(("plan", "share"), [(Plan(remat="on"), None), (Plan(remat="on", remat_layers=("a",)), 0.2)])
def test_what_rematerialization_saves_may_be_unknown(plan: Plan, share: float | None) -> None:
    low, high = parts(plan, size=replace(SIZE, remat_share=share))["activations"]
    assert low == round(LARGEST[0] * 8 * 400)
    assert high == parts()["activations"][1]


def test_outputs_of_layers_alone_give_a_wide_range() -> None:
    low, high = parts(size=replace(SIZE, operations=0))["activations"]
    assert (low, high) == tuple(
        round(saved * 8 * 350 + more * 8 * 400) for saved, more in zip(UNTRACED, LARGEST, strict=True)
    )


def test_a_process_on_cpus_takes_more_than_its_arrays() -> None:
    found = parts(data=1000)
    assert found["data"] == (DATA[0] * 1000, DATA[1] * 1000)
    assert found["TensorFlow"] == TENSORFLOW
    assert found["graph and kernels"] == (GRAPH[0] + 40 * OPERATION[0], GRAPH[1] + 40 * OPERATION[1])
    assert found["copies of weights"] == tuple(round(share * 4 * (110 + 100 * 3)) for share in STATE_COPIES)


def test_xla_takes_more_where_it_may_compile() -> None:
    most = XLA[1] + 40 * XLA_OPERATION[1]
    assert parts()["XLA"] == (0, most)
    assert parts(Plan(xla="on"))["XLA"] == (XLA[0], most)
    assert "XLA" not in parts(Plan(xla="off"))
    assert "XLA" not in parts(placement=Placement(("cpu:0", "cpu:1")))


def test_data_that_is_too_large_to_be_cached_is_read_lazily() -> None:
    assert parts(data=GIB, memory=5 * GIB)["data"][0] > GIB
    assert parts(data=GIB, memory=2 * GIB)["data"] == (0, GIB // 2)
    assert parts(data=GIB, placement=ON_GPU, memory=5 * GIB)["cached data"] == both(GIB)
    assert "cached data" not in parts(data=GIB, placement=ON_GPU, memory=2 * GIB)
    assert "cached data" not in parts(data=GIB, placement=Placement(("tpu:0",)))


def test_replicas_on_cpus_and_local_workers_share_the_host() -> None:
    one, two = parts(data=1000), parts(placement=Placement(("cpu:0", "cpu:1")), data=1000)
    assert two["weights"] == both(2 * 440)
    assert two["TensorFlow"] == one["TensorFlow"]
    assert two["data"] == tuple(each + 1000 for each in one["data"])
    plan = Plan(strategy="multi-worker", local_workers=3)
    workers = parts(plan, Placement(("cpu:0",), workers=3))
    assert workers["weights"] == both(3 * 440)
    assert workers["TensorFlow"] == tuple(3 * each for each in one["TensorFlow"])


def test_what_was_not_measured_of_an_accelerator_is_said() -> None:
    estimate = estimate_memory(Training(Plan(), SIZE, 8, ON_GPU))
    assert [part.name for part in estimate.parts] == ["weights", "gradients", "optimizer state", "activations"]
    assert estimate.left_out == "the CUDA context and the workspace of cuDNN, which were not measured"
    assert estimate_memory(Training(Plan(), SIZE, 8, ON_CPU)).left_out == ""
    unknown = estimate_memory(Training(Plan(), replace(SIZE, saved=0, operations=0), 8, ON_CPU))
    assert unknown.left_out == "the activations, which are unknown for this model"


def test_a_training_fits_for_certain_not_at_all_or_perhaps() -> None:
    estimate = MemoryEstimate((MemoryPart("weights", 100, 100), MemoryPart("activations", 50, 70)))
    assert (estimate.low, estimate.high) == (150, 170)
    assert estimate.fits(170) is True
    assert estimate.fits(149) is False
    assert estimate.fits(169) is estimate.fits(150) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("digits", 1437 * (64 + 4)), ("synthetic:4x4x3:10:50", 50 * (48 + 4))],
)
def test_the_size_of_built_in_data(name: str, expected: int) -> None:
    assert data_bytes(data.find(name)) == expected


def test_the_size_of_arrays_follows_from_their_specs() -> None:
    entry = replace(data.find("digits"), spec=Batch(ArraySpec((5, 3), "float64"), ArraySpec((), "int8")), examples=10)
    assert data_bytes(entry) == 10 * (5 * 3 * 8 + 1)
    assert data_bytes(replace(entry, examples=None)) is None
    assert data_bytes(replace(entry, spec=None, shape=None)) is None


def test_texts_take_the_bytes_of_their_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("one", "two"):
        (tmp_path / "a" / f"{name}.txt").write_text("x" * 1000)
    table = tmp_path / "texts.csv"
    table.write_text("x" * 8000)
    spec = Batch(ArraySpec((), "string"), ArraySpec((), "int32"))
    entry = replace(data.find("digits"), examples=6, validation_examples=2, spec=spec)
    header = 8 + sys.getsizeof("")
    assert data_bytes(replace(entry, path=table)) == 6 * (1000 + header + 4)
    assert data_bytes(replace(entry, path=tmp_path)) == 6 * (1000 + header + 4)
    assert data_bytes(entry) == 6 * (header + 4)
