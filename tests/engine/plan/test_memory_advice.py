from dataclasses import replace
from typing import Any

import pytest

from accel_engine.errors import join_words
from accel_engine.plan import Plan
from accel_engine.plan.array_bytes import ModelSize
from accel_engine.plan.memory_advice import cheapest_change
from accel_engine.plan.memory_estimate import Training, estimate_memory
from accel_engine.plan.placement import Placement

MIB = 1 << 20
SIZE = ModelSize(1000, 1000, saved=100 * MIB, largest=MIB, remat_share=0.2, operations=10)
GPU = Training(Plan(batch_size=64, remat="off"), SIZE, 64, Placement(("gpu:0",)))
CPU = replace(GPU, placement=Placement(("cpu:0",)))


def advice(training: Training, memory: int) -> str:
    change = cheapest_change(replace(training, memory=memory))
    if change is None:
        return ""
    assert change.estimate.high <= memory
    return join_words(change.words)


def high(training: Training, **plan: Any) -> int:
    return estimate_memory(replace(training, plan=training.plan.replace(**plan))).high


def test_the_fewest_micro_batches_that_fit_come_first() -> None:
    assert advice(GPU, high(GPU, micro_batches=2)) == "--micro-batches 2"
    assert advice(GPU, high(GPU, micro_batches=2) - 1) == "--micro-batches 4"
    assert advice(GPU, high(GPU, micro_batches=8)) == "--micro-batches 8"


def test_rematerialization_comes_before_a_mixed_precision_and_with_it_micro_batches() -> None:
    tight = high(GPU, micro_batches=8) - 1
    free = replace(GPU, plan=Plan(batch_size=64))
    assert advice(free, tight) == "--remat on, --micro-batches 2"
    assert advice(GPU, tight) == "--precision mixed_float16, --micro-batches 8"
    alone = replace(GPU, size=replace(SIZE, is_divisible=False))
    assert advice(replace(alone, plan=Plan(batch_size=64)), high(alone) - 1) == "--remat on"
    unknown = replace(alone, plan=Plan(batch_size=64), size=replace(alone.size, remat_share=None))
    assert "remat" not in advice(unknown, high(alone) - 1)
    distributed = replace(alone, plan=Plan(batch_size=64, strategy="parameter-server"))
    assert "remat" not in advice(distributed, high(alone) - 1)
    assert advice(alone, high(alone) - 1) == "--precision mixed_float16"


def test_a_tpu_takes_bfloat16() -> None:
    tpu = replace(GPU, placement=Placement(("tpu:0",)), size=replace(SIZE, is_divisible=False))
    plan = tpu.plan.replace(precision="float32")
    assert advice(replace(tpu, plan=plan), high(tpu, precision="mixed_bfloat16")) == "--precision mixed_bfloat16"


def test_a_cpu_takes_no_mixed_precision_but_a_smaller_batch() -> None:
    assert advice(CPU, high(CPU, micro_batches=8)) == "--micro-batches 8"
    # Eight examples at once take less than eight micro-batches of them, whose gradients are accumulated.
    assert advice(CPU, high(CPU, micro_batches=8) - 1) == "--batch-size 8"


def test_a_smaller_batch_is_the_last_resort_and_the_largest_that_fits() -> None:
    alone = replace(CPU, size=replace(SIZE, is_divisible=False))
    quarter = replace(alone, per_replica_batch=16)
    assert advice(alone, high(quarter)) == "--batch-size 16"


def test_replicas_share_a_smaller_batch() -> None:
    alone = replace(CPU, size=replace(SIZE, is_divisible=False), plan=Plan(batch_size=128, remat="off"))
    alone = replace(alone, placement=Placement(("cpu:0", "cpu:1")))
    assert advice(alone, high(replace(alone, per_replica_batch=32))) == "--batch-size 64"


@pytest.mark.parametrize("memory", [0, 100 * MIB])
def test_weights_alone_may_be_too_large(memory: int) -> None:
    large = replace(GPU, size=replace(SIZE, parameters=10**9, trainable=10**9))
    assert advice(large, memory) == ""


def test_nothing_is_advised_for_an_unknown_memory() -> None:
    assert cheapest_change(GPU) is None
