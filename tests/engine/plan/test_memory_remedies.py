"""What a run that is out of memory does next, and what its user can choose from."""

from dataclasses import replace
from typing import Any

import pytest

from accel_engine.errors import join_words
from accel_engine.json_values import decode_or_none, encode
from accel_engine.plan import SPECS, Plan
from accel_engine.plan.array_bytes import ModelSize, StageShare
from accel_engine.plan.memory_estimate import Training, estimate_memory
from accel_engine.plan.memory_remedies import REMEDIES, MemoryFacts, advised, cheapest_change, next_repair
from accel_engine.plan.placement import Placement

EXACT = MemoryFacts(batch=64, can_split=True, can_recompute=True)
INEXACT = replace(EXACT, splitting_changes=("batch normalization", "dropout"))


def cures(plan: Plan, facts: MemoryFacts) -> list[str | int]:
    """What a run that is out of memory again and again does: the values of the changed fields, or ``streams``."""
    done: list[str | int] = []
    while (cure := next_repair(plan, facts)) is not None:
        plan = plan.replace(**cure.changes)  # also checks it
        facts = replace(facts, caches_data=facts.caches_data and not cure.streams_data)
        done += cure.changes.values() or ["streams"]
    return done


def test_micro_batches_come_first_where_they_change_nothing() -> None:
    assert cures(Plan(), EXACT) == [2, 4, 8, "on", 16, 32, 64]


def test_rematerialization_comes_first_where_micro_batches_change_the_losses() -> None:
    assert cures(Plan(), INEXACT) == ["on", 2, 4, 8, 16, 32]

    cure = next_repair(Plan(remat="on"), INEXACT)
    assert cure is not None
    assert "in 2 micro-batches of 32 examples" in cure.action
    assert "changes the losses: batch normalization and dropout" in cure.action


def test_data_is_streamed_and_xla_left_out_before_micro_batches_become_small() -> None:
    more = {"caches_data": True, "tries_xla": True}
    assert cures(Plan(), replace(EXACT, **more)) == [2, 4, 8, "on", "streams", "off", 16, 32, 64]
    assert cures(Plan(), replace(INEXACT, **more)) == ["on", "streams", "off", 2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    ("batch", "counts"),
    [(48, [2, 4, 8, 16, 48]), (100, [2, 4, 10, 20, 50, 100]), (37, [37]), (1, []), (75, [3, 15, 75])],
)
def test_micro_batches_at_least_double_and_divide_the_batch(batch: int, counts: list[int]) -> None:
    found = [cure for cure in cures(Plan(remat="on"), replace(EXACT, batch=batch)) if isinstance(cure, int)]
    assert found == counts


def test_micro_batches_of_the_user_are_doubled() -> None:
    assert cures(Plan(micro_batches=4), EXACT)[0] == 8
    assert cures(Plan(micro_batches=64), EXACT) == ["on"]


def test_the_users_remat_off_stays_until_nothing_else_is_left() -> None:
    assert cures(Plan(remat="off"), EXACT) == [2, 4, 8, 16, 32, 64, "on"]
    assert cures(Plan(remat="off", micro_batches=32), INEXACT) == ["on"]

    cure = next_repair(Plan(remat="off", micro_batches=64), EXACT)
    assert cure is not None
    assert "although the plan says --remat off" in cure.action


def test_the_users_xla_stays() -> None:
    facts = replace(EXACT, tries_xla=True, can_split=False, can_recompute=False)
    assert cures(Plan(), facts) == ["off"]
    assert cures(Plan(xla="on"), facts) == cures(Plan(xla="off"), facts) == []


def test_a_custom_step_only_stops_caching_its_data() -> None:
    assert cures(Plan(), MemoryFacts(batch=64)) == []
    assert cures(Plan(), MemoryFacts(batch=64, caches_data=True)) == ["streams"]


def test_facts_are_stored_as_text() -> None:
    facts = replace(INEXACT, variables={"CUDA_VISIBLE_DEVICES": ""})
    assert decode_or_none(encode(facts), MemoryFacts) == facts
    assert decode_or_none("{}", MemoryFacts) is None
    assert decode_or_none(None, MemoryFacts) is None


def choices(plan: Plan, facts: MemoryFacts) -> dict[str, str | int]:
    return {remedy.field: value for remedy, value in advised(plan, facts)}


def test_a_user_can_choose_from_one_of_each_field_those_that_cost_least_first() -> None:
    on_gpu = replace(EXACT, mixed="mixed_float16")
    every = {"micro_batches": 2, "remat": "on", "precision": "mixed_float16", "batch_size": 32}
    assert choices(Plan(), on_gpu) == every
    assert list(choices(Plan(), on_gpu)) == list(every)
    assert choices(Plan(remat="off"), replace(EXACT, batch=12)) == {"micro_batches": 2, "remat": "on", "batch_size": 30}
    done = Plan(micro_batches=64, remat="on", precision="mixed_float16")
    assert choices(done, on_gpu) == {"batch_size": 32}
    for name, value in every.items():
        Plan(**{name: value})


def test_runs_change_by_themselves_what_keeps_their_losses_only() -> None:
    left = {remedy.field for remedy in REMEDIES if not remedy.by_itself}
    assert left == {"precision", "strategy", "batch_size"}
    assert {remedy.field for remedy in REMEDIES if remedy.field} <= set(SPECS)


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


def test_a_pipeline_is_for_what_no_cheaper_change_makes_fit() -> None:
    half = (StageShare(0.5, 0.5), StageShare(0.5, 0.5))
    size = replace(SIZE, parameters=30 * MIB, trainable=30 * MIB, saved=MIB, stages=(half,))
    training = replace(GPU, size=size, accelerators=("gpu:0", "gpu:1"))
    weights = 16 * 30 * MIB  # with gradients and two slots
    alone = high(training, micro_batches=8)
    assert alone > weights
    assert advice(training, alone) == "--micro-batches 8"
    assert advice(training, alone - 100 * MIB) == "--strategy pipeline"
    staged = cheapest_change(replace(training, memory=alone - 100 * MIB))
    assert staged is not None
    # 8 micro-batches: the first stage holds two of them, half of its activations, and gradients are accumulated
    parts = {part.name: part.low for part in staged.estimate.parts}
    assert parts["weights"] == parts["gradients"] / 2 == 60 * MIB
    assert parts["activations"] >= 2 * (64 // 8) * MIB // 2
    assert "strategy" not in advice(replace(training, accelerators=("gpu:0",)), alone - 100 * MIB)
    assert "strategy" not in advice(replace(training, size=replace(size, stages=())), alone - 100 * MIB)


def test_state_in_host_memory_comes_before_a_mixed_precision_and_a_pipeline() -> None:
    half = (StageShare(0.5, 0.5), StageShare(0.5, 0.5))
    size = replace(SIZE, parameters=30 * MIB, trainable=30 * MIB, saved=MIB, stages=(half,), widest=MIB)
    training = replace(GPU, size=size, accelerators=("gpu:0", "gpu:1"))
    moved = high(training, optimizer_state="host")
    assert high(training) - moved == 8 * 28 * MIB  # two of thirty weights are on the device at a time
    assert advice(training, moved) == "--optimizer-state host"
    assert "optimizer-state" not in advice(replace(training, plan=GPU.plan.replace(optimizer="sgd")), moved - 200 * MIB)
    facts = replace(EXACT, can_place_state=True, tries_xla=True, on_host=False)
    assert cures(Plan(), facts) == [2, 4, 8, "on", "host", "off", 16, 32, 64]
    assert "host" not in cures(Plan(strategy="multi-worker"), facts)
    assert "host" not in cures(Plan(xla="on"), facts)


def test_replicas_divide_the_state_before_it_is_in_host_memory() -> None:
    facts = replace(EXACT, can_place_state=True, on_host=False)
    mirrored = Plan(strategy="mirrored", micro_batches=64, remat="on")
    assert cures(mirrored, facts) == ["sharded", "host"]
    assert cures(mirrored, replace(facts, on_host=True)) == ["sharded"]
    assert cures(mirrored.replace(optimizer="sgd"), facts) == []
    size = replace(SIZE, parameters=30 * MIB, trainable=30 * MIB, saved=MIB, widest=MIB)
    two = Placement(("gpu:0", "gpu:1"))
    training = replace(GPU, plan=GPU.plan.replace(strategy="mirrored"), size=size, placement=two)
    divided = high(training, optimizer_state="sharded")
    assert high(training) - divided == 8 * (15 - 1) * MIB  # one replica may have another weight's state
    assert advice(training, divided) == "--optimizer-state sharded"
    assert advice(training, high(training, optimizer_state="host")) == "--optimizer-state host"
    # logical CPUs share a memory, in which the state is once
    on_cpus = replace(training, placement=Placement(("cpu:0", "cpu:1")))
    assert high(on_cpus) - high(on_cpus, optimizer_state="sharded") == 8 * 30 * MIB


def test_a_pipeline_without_memory_takes_more_micro_batches_than_it_chose() -> None:
    assert cures(Plan(strategy="pipeline"), replace(EXACT, micro_batches=8, can_recompute=False)) == [16, 32, 64]
