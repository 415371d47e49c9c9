from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from accel_engine.advice import FasterPlan, Finding, Recorded, find_troubles, memory, speed
from accel_engine.devices.device_types import Sample
from accel_engine.events import CheckpointSaved, Outcome, Recovered, RunEnded, TimeMeasured, Validated, WorkCounted
from accel_engine.plan import Plan
from accel_engine.run.diagnostics import Diagnostics, Layer, LayerTable, StageOfModel
from accel_engine.run.engine.status import Status
from engine.advice.records import recorded, samples, started
from example_profile import profiled


def found(run: Recorded) -> list[Finding]:
    return [finding for rule in (*speed.RULES, *memory.RULES) for finding in rule(run)]


def ids(run: Recorded) -> list[str]:
    return [finding.id for finding in found(run)]


def spent(seconds: float = 10.0, **by: float) -> list[TimeMeasured]:
    """A first record, which has what happens once, and another."""
    first = TimeMeasured(
        time=1.0, first_step=0, step=10, seconds=5.0, spent={"steps": 1.0, "tracing": 3.0, "input": 1.0}
    )
    return [first, TimeMeasured(time=2.0, first_step=10, step=500, seconds=seconds, spent=by)]


def traced(seconds: float, count: int = 3) -> list[TimeMeasured]:
    """Records of 4 seconds each with some seconds of tracing, after the first one of an engine."""
    by = {"steps": 4.0 - seconds, "tracing": seconds}
    return [*spent()[:1], *(replace(event, seconds=4.0, spent=by) for event in spent()[1:] * count)]


def test_only_what_each_engine_measures_first_is_left_out() -> None:
    (finding,) = found(recorded(*traced(2.0), started(first_step=500), *traced(2.0)))

    assert finding.evidence[0].text.startswith("12 s of tracing")


def adapted(step: int = 0, **changes: Any) -> Recovered:
    """A run that was out of memory at step 7."""
    return Recovered(
        time=1.0, trouble="out of memory", step=step, failed_step=7, reason="r", action="a", changes=changes
    )


def traced_once() -> list[TimeMeasured]:
    """All that a short run measures."""
    return [TimeMeasured(time=1.0, first_step=0, step=10, seconds=5.0, spent={"steps": 2.0, "tracing": 3.0})]


def validated(step: int, seconds: float = 0.5) -> Validated:
    return Validated(time=float(step), epoch=0, step=step, metrics={"loss": 1.0}, seconds=seconds)


def saved(step: int, seconds: float = 0.5) -> CheckpointSaved:
    return CheckpointSaved(time=float(step), epoch=0, step=step, path="c", seconds=seconds)


SWAP = [at * 1e8 for at in range(10)]

GPU = {"utilization": 90, "memory_total": 16e9, "allocated_peak": 4e9}
HOST = {"utilization": 30, "memory_total": 16e9, "memory_used": 4e9, "engine_memory": 1e9}


HEALTHY: dict[str, Recorded] = {
    "nothing is known": recorded(),
    "a device that is busy": recorded(kind="gpu", diagnostics=Diagnostics(operations=profiled())),
    "a trace of the host alone, of a run on a GPU": recorded(
        kind="gpu",
        diagnostics=Diagnostics(operations=profiled(busy=0.5, device="cpu")),
    ),
    "input is hidden": recorded(*spent(steps=9.0, input=0.4)),
    "a continued run, which traces once in each engine": recorded(
        *spent(steps=9.5), started(first_step=500), *spent(steps=9.5), started(first_step=500), *spent(steps=9.5)
    ),
    "a smaller last batch, which is traced after the first record": recorded(*traced(3.0, 1), *traced(0.0)[1:]),
    "a repaired run, which traces again": recorded(
        *spent(steps=9.5),
        Recovered(time=3.0, trouble="not a number", step=10, failed_step=20, reason="r", action="a"),
        *spent(steps=9.5),
    ),
    "a run whose engines have a record each": recorded(*traced_once(), started(first_step=10), *traced_once()),
    "the user chose the CPU beside an idle GPU": recorded(
        plan=Plan(devices=("cpu:0",)),
        readings=[*samples("gpu:0", utilization=0), *samples("cpu:0", **HOST, engine_cpu=300)],
    ),
    "an idle CPU beside an idle GPU": recorded(
        readings=[*samples("gpu:0", utilization=0), *samples("cpu:0", **{**HOST, "utilization": 3}, engine_cpu=20)]
    ),
    "out of memory in validation only": recorded(adapted()),
    "validates after each epoch": recorded(
        *spent(steps=7.0, validation=2.5), *(validated(step) for step in (100, 200, 300, 400))
    ),
    "a busy GPU": recorded(
        *spent(steps=9.5), kind="gpu", readings=[*samples("gpu:0", **GPU), *samples("cpu:0", **HOST)]
    ),
    "a limit of power at full clock": recorded(
        kind="gpu", readings=samples("gpu:0", **GPU, throttling=("SW power cap",), clock_sm=1980)
    ),
    "an idle GPU beside a GPU that trains": recorded(
        kind="gpu", readings=[*samples("gpu:0", **GPU), *samples("gpu:1", utilization=0)]
    ),
    "swap from before": recorded(readings=samples("cpu:0", **{**HOST, "memory_used": 15e9}, swap_used=3e9)),
    "an idle process on the GPU": recorded(
        kind="gpu", readings=samples("gpu:0", **GPU, processes=(("python", "42", 4e9), ("blender", "99", 3e8)))
    ),
    "own process on a GPU": recorded(kind="gpu", readings=samples("gpu:0", **GPU, processes=(("python", "42"),))),
    "a few pauses": recorded(*spent(seconds=100.0, steps=9.5, commands=90.0)),
    "a busy host": recorded(readings=samples("cpu:0", **HOST, engine_cpu=95, core_0=1, core_1=1)),
    "float32 on a CPU": recorded(WorkCounted(time=0.0, flops=1e12, peak=None)),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_a_healthy_run(name: str) -> None:
    assert ids(HEALTHY[name]) == []


def gpu(count: int = 10, **readings: Any) -> list[Sample]:
    return samples("gpu:0", count, **{**GPU, **readings})


WIDE = LayerTable((Layer("dense", "Dense", 0, (130,), 10, 10, 1e9),))

TROUBLED: dict[str, tuple[str, Recorded, Mapping[str, Any]]] = {
    "waits for input": ("input-wait", recorded(*spent(steps=9.0, input=6.0)), {}),
    "waits a little": ("input-wait", recorded(*spent(steps=9.0, input=0.9)), {}),
    "validates within epochs": (
        "frequent-validation",
        recorded(*spent(steps=4.0, validation=6.0), *(validated(step) for step in (10, 20, 30, 40))),
        {"validation_every": "90 steps"},
    ),
    "validates every epoch for long": (
        "frequent-validation",
        recorded(*spent(100.0, steps=30.0, validation=70.0), *(validated(step) for step in (100, 200, 300))),
        {"validation_every": "14 epochs"},
    ),
    "saves too often": (
        "frequent-checkpoints",
        recorded(*spent(steps=7.0, checkpoints=3.0), *(saved(step) for step in (10, 20, 30, 40))),
        {"checkpoint_every": "140 steps"},
    ),
    "a slow disk": (
        "slow-disk",
        recorded(
            *spent(steps=5.0, checkpoints=5.0),
            *(saved(step, 4.0) for step in (100, 200, 300)),
            built={"parameters": 1_000_000, "trainable": 1_000_000},
        ),
        {"checkpoint_every": "33 epochs"},
    ),
    "shapes change": ("retracing", recorded(*traced(2.0)), {}),
    "the GPU is not used": (
        "unused-accelerator",
        recorded(readings=[*samples("gpu:0", utilization=[0] * 9 + [40]), *samples("cpu:0", **HOST, engine_cpu=300)]),
        {"devices": ("gpu:0",), "strategy": "default"},
    ),
    "small steps": ("small-steps", recorded(kind="gpu", readings=gpu(utilization=20)), {"batch_size": 128}),
    "gaps between kernels": (
        "idle-device",
        recorded(kind="gpu", diagnostics=Diagnostics(operations=profiled(busy=0.5))),
        {"batch_size": 128},
    ),
    "heat": ("throttling", recorded(kind="gpu", readings=gpu(throttling=("HW thermal slowdown",), clock_sm=900)), {}),
    "a limit of power at a low clock": (
        "throttling",
        recorded(kind="gpu", readings=gpu(throttling=("SW power cap",), clock_sm=[1980, *[900] * 9])),
        {},
    ),
    "other programs on the CPU": (
        "neighbours",
        recorded(readings=samples("cpu:0", **{**HOST, "utilization": 99}, engine_cpu=60, core_0=1, core_1=1)),
        {},
    ),
    "another program on the GPU": (
        "neighbours",
        recorded(kind="gpu", readings=gpu(processes=(("python", "42", 4e9), ("blender", "99", 5e9)))),
        {},
    ),
    "swapping": (
        "swapping",
        recorded(readings=samples("cpu:0", **{**HOST, "memory_used": 15.5e9}, swap_used=SWAP)),
        {},
    ),
    "float16 on a CPU": (
        "float16-on-cpu",
        recorded(built={"precision": "mixed_float16"}),
        {"precision": "float32", "force": "off"},
    ),
    "float32 on a GPU": (
        "float32-on-gpu",
        recorded(WorkCounted(time=0.0, flops=1e12, peak=None), kind="gpu", readings=gpu()),
        {"precision": "mixed_bfloat16"},
    ),
    "XLA off on a GPU": ("xla-off", recorded(kind="gpu", plan=Plan(xla="off"), readings=gpu()), {"xla": "auto"}),
    "a faster configuration": (
        "raced-faster",
        recorded(faster=FasterPlan({"xla": "on"}, 2.0)),
        {"xla": "on"},
    ),
    "padding": (
        "tpu-padding",
        recorded(kind="tpu", built={"per_replica_batch": 9}, diagnostics=Diagnostics(layers=WIDE)),
        {"batch_size": 16},
    ),
    "out of memory": (
        "out-of-memory",
        recorded(
            RunEnded(time=9.0, outcome=Outcome.FAILED, steps=3, epochs=0, seconds=1.0, reason="out of memory"),
            status=Status.FAILED,
        ),
        {"micro_batches": 2},
    ),
    "recovered from it": (
        "adapted-to-memory",
        recorded(adapted(micro_batches=2)),
        {},
    ),
    "nearly full": (
        "memory-nearly-full",
        recorded(kind="gpu", readings=gpu(allocated_peak=15.5e9)),
        {"micro_batches": 2},
    ),
}


@pytest.mark.parametrize("name", TROUBLED)
def test_each_trouble_is_found_alone_with_its_cure(name: str) -> None:
    wanted, run, changes = TROUBLED[name]
    findings = found(run)

    assert [finding.id for finding in findings] == [wanted]
    (finding,) = findings
    assert dict(finding.cures[0].changes) == changes
    assert finding.evidence
    assert 0 < len(finding.title) <= 70
    assert 0 < finding.weight <= 1
    if changes and run.plan:
        run.plan.replace(**changes)  # a plan takes them


@pytest.mark.parametrize(
    ("repairs", "cost"),
    [
        ([adapted(micro_batches=2), replace(adapted(), trouble="not a number")], "7 steps were trained again"),
        ([adapted(5, micro_batches=2), adapted(7)], "2 steps were trained again"),
        ([adapted(7, micro_batches=2)], "the steps were built again"),
    ],
)
def test_what_changed_the_steps_is_named_whatever_came_after_it(repairs: list[Recovered], cost: str) -> None:
    (finding,) = found(recorded(*repairs))

    assert finding.cost == cost
    assert finding.cures[0].text.endswith(": --micro-batches 2")


def test_the_gain_of_a_cure_follows_from_the_measured_share() -> None:
    (finding,) = found(recorded(*spent(steps=8.0, input=6.0)))

    gain = finding.cures[0].gain
    assert gain is not None
    assert gain.factor == pytest.approx(4.0)
    assert finding.steps == (10, 500)
    assert finding.evidence[0].text == "6 s of 8 s of steps were waits for batches"


@pytest.mark.parametrize(("waited", "known"), [(1.0, []), (4.0, ["input-wait"])])
def test_small_waits_beside_other_programs_are_not_the_datas_fault(waited: float, known: list[str]) -> None:
    busy = samples("cpu:0", **{**HOST, "utilization": 99}, engine_cpu=60, core_0=99, core_1=99)
    run = recorded(*spent(steps=9.0, input=waited), readings=busy)
    assert [each for each in ids(run) if each == "input-wait"] == known


def test_a_busy_processor_is_named_as_the_limit_of_the_input() -> None:
    (finding,) = found(
        recorded(*spent(steps=8.0, input=6.0), readings=samples("cpu:0", **HOST, engine_cpu=190, core_0=1, core_1=1))
    )

    assert "the processors are the limit" in finding.cures[0].text


WORKERS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "slow input": ({"events": spent(steps=9.0, input=0.1)}, {"events": spent(steps=9.0, input=6.0)}, "worker 1 waits"),
    "comes last": (
        {"events": spent(steps=9.0, workers=4.0)},
        {"events": spent(steps=9.0, workers=0.2)},
        "the others wait for worker 1 for 40%",
    ),
    "one computes": ({"engine_cpu": 40}, {"engine_cpu": 100}, "worker 1 takes 100%"),
}


@pytest.mark.parametrize("name", WORKERS)
def test_the_slowest_worker_is_named(name: str) -> None:
    chief, other, words = WORKERS[name]

    def worker(events: Any = (), **readings: Any) -> Recorded:
        return recorded(*events, readings=samples("cpu:0", **HOST, **readings))

    run = replace(worker(**chief), workers={"worker 1": worker(**other), "worker 2": worker(**chief)})
    (finding,) = [each for each in found(run) if each.id == "straggler"]

    assert words in finding.evidence[0].text
    equal = replace(worker(**chief), workers={"worker 1": worker(**chief)})
    assert "straggler" not in ids(equal)


def test_what_matters_most_comes_first() -> None:
    run = recorded(*spent(steps=9.0, input=1.0), kind="gpu", readings=gpu(allocated_peak=15.9e9))

    weights = [finding.weight for finding in find_troubles(run)]
    assert weights == sorted(weights, reverse=True)
    assert len(weights) == 2


def in_stages(*work: float, micro_batches: int = 16, **plan: Any) -> Recorded:
    """A run of a pipeline, with the shares of a step that its stages take."""
    stages = tuple(StageOfModel(f"GPU:{index}", "a", "b", 10, 80, each, 4) for index, each in enumerate(work))
    table = LayerTable((), stages=stages, micro_batches=micro_batches)
    built = {"per_replica_batch": 64}
    return recorded(plan=Plan(**plan), built=built, diagnostics=Diagnostics(layers=table))


def test_a_pipeline_with_few_micro_batches_gets_more() -> None:
    assert ids(in_stages(0.5, 0.5, micro_batches=8)) == []
    (finding,) = found(in_stages(0.25, 0.25, 0.25, 0.25, micro_batches=4))
    assert (finding.id, finding.cures[0].changes) == ("pipeline-bubble", {"micro_batches": 16})
    assert finding.title == "The pipeline's devices wait for 43% of each step"
    (undivided,) = found(in_stages(0.5, 0.5, micro_batches=1))
    assert (undivided.cures[0].changes, "50%" in undivided.title) == ({}, True)


def test_a_stage_that_takes_much_longer_is_named_and_cuts_by_hand_are_left_out() -> None:
    (finding,) = found(in_stages(0.8, 0.2, strategy="pipeline", stages=("b",)))
    assert (finding.id, finding.cures[0].changes) == ("uneven-stages", {"stages": ()})
    assert "GPU:0 takes 80%" in finding.title
    (without,) = found(in_stages(0.2, 0.8))
    assert without.cures[0].changes == {}
