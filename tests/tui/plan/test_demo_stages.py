import math

import numpy as np
import pytest

from accel_engine.devices.device_types import Device
from accel_engine.plan import Plan
from accel_engine.run import Chunk
from accel_tui.plan.demo_stages import DemoResult, DemoStage, agreement, bars, drawbacks, rate, stages

CPU = Device("cpu:0", "cpu", "AMD EPYC", cores=4)
GPUS = tuple(Device(f"gpu:{index}", "gpu", "NVIDIA L4") for index in range(4))
TPU = Device("tpu:0", "tpu", "TPU v5e")


@pytest.mark.parametrize(
    ("devices", "titles"),
    [
        ((CPU,), ["one thread", "all 4 cores", "one thread per operation", "XLA", "bfloat16", "CPU in two, mirrored"]),
        ((Device("cpu:0", "cpu", "A small one", cores=1),), ["CPU", "XLA", "bfloat16"]),
        ((CPU, GPUS[0]), ["CPU", "one GPU", "one GPU, XLA", "one GPU, mixed precision"]),
        (
            (CPU, *GPUS),
            ["CPU", "one GPU", "one GPU, XLA", "one GPU, mixed precision", "4 GPUs", "4 GPUs, mixed precision"],
        ),
        ((CPU, TPU), ["CPU"]),  # the TensorFlow that is installed here has no TPU support
    ],
)
def test_what_is_shown_is_what_the_machine_has(devices: tuple[Device, ...], titles: list[str]) -> None:
    chosen = stages(devices)
    assert [stage.title for stage in chosen] == titles


def test_the_acts_differ_in_how_they_train_and_not_in_what() -> None:
    how = {"name", "strategy", "devices", "virtual_cpus", "precision", "xla", "threads"}
    for devices in ((CPU,), (CPU, *GPUS)):
        plans = [stage.plan for stage in stages(devices)]
        assert (
            len({str({name: plan.to_mapping()[name] for name in plan.to_mapping().keys() - how}) for plan in plans})
            == 1
        )
        assert len({plan.name for plan in plans}) == len(plans)


def chunk(first: int, count: int, started: float, ended: float) -> Chunk:
    return Chunk(first, count, started, ended, {"accuracy": np.zeros(count, np.float32)})


def test_the_warm_up_and_what_is_no_training_are_left_out() -> None:
    chunks = [
        chunk(0, 1, 100.0, 101.5),
        chunk(1, 10, 101.5, 102.5),
        chunk(11, 10, 102.5, 103.5),
        chunk(21, 40, 120.0, 121.0),  # after a pause
    ]
    assert rate(chunks) == (pytest.approx(20), pytest.approx(3.0))


def test_dispatches_that_overlap_count_once() -> None:
    chunks = [chunk(0, 1, 100.0, 102.0), chunk(1, 10, 101.5, 103.0), chunk(11, 10, 102.5, 104.0)]
    assert rate(chunks) == (pytest.approx(10), pytest.approx(2.0))


@pytest.mark.parametrize("chunks", [[], [chunk(0, 5, 100, 109)], [chunk(0, 5, 100, 100.2), chunk(5, 5, 100.2, 100.4)]])
def test_there_is_no_rate_before_the_warm_up_is_over(chunks: list[Chunk]) -> None:
    assert rate(chunks) == (None, 0.0)


def result(title: str, value: float | None, accuracies: list[float] | None = None, problem: str = "") -> DemoResult:
    return DemoResult(DemoStage(title, Plan()), "run", value, 5.0, accuracies or [], problem)


def test_accuracies_are_compared_after_as_many_steps() -> None:
    slow = result("slow", 10.0, [0.0] * 20 + [0.5] * 20)
    fast = result("fast", 90.0, [0.0] * 20 + [0.51] * 20 + [1.0] * 500)
    failed = result("failed", None, [0.1])
    found = agreement([slow, fast, failed])
    assert found is not None
    assert (found.steps, found.window) == (40, 20)
    assert found.accuracies == {"slow": pytest.approx(0.5), "fast": pytest.approx(0.51)}
    assert found.agree
    other = agreement([slow, result("wrong", 50.0, [0.1] * 40)])
    assert other is not None
    assert not other.agree


def test_what_is_no_number_is_not_alike() -> None:
    found = agreement([result("a", 1.0, [0.5] * 40), result("b", 1.0, [math.nan] * 40)])
    assert found is not None
    assert not found.agree


def test_there_is_nothing_to_compare_with_one_or_with_few_steps() -> None:
    assert agreement([result("one", 10.0, [0.5] * 40)]) is None
    assert agreement([result("one", 10.0, [0.5] * 40), result("two", 10.0, [0.5] * 19)]) is None
    assert agreement([]) is None


def test_what_is_slower_than_the_first_stage_says_why_it_can_be() -> None:
    rates = (100.0, 96.0, 300.0, 20.0, None)  # of all but the last stage
    lines = drawbacks([DemoResult(stage, "run", rate) for stage, rate in zip(stages((CPU,)), rates, strict=False)])
    assert lines == ["XLA can be slower: on a CPU its large operations are slower than oneDNN's"]
    assert drawbacks([]) == []


def test_bars_are_as_long_as_rates_are_high() -> None:
    lines = bars([result("CPU", 10.0), result("one GPU", 200.0), result("two", None, problem="failed: why")], 80, "#")
    assert all(len(line) <= 80 for line in lines)
    assert [line.count("#") for line in lines] == [2, 43, 0]
    assert lines[0].endswith("10.0 steps/s   1.00x")
    assert lines[1].endswith("200 steps/s  20.00x")
    assert lines[2] == "two      failed: why"
    assert bars([], 80) == []
