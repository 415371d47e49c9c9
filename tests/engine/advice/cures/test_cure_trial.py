"""What a trial says; without engines."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine.advice.cures.cure_task import CureTask, Quantity
from accel_engine.advice.cures.cure_trial import learning_result, memory_result, speed_result
from accel_engine.errors import AccelError
from accel_engine.measure.equal_examples import Learned
from accel_engine.measure.trial_process import TrialFailedError
from accel_engine.measure.trial_statistics import compare_losses, compare_rates
from accel_engine.plan import Plan
from accel_engine.requests.try_plan import TrialStart


def trial(rate: float, memory: float | None = 1e9, problem: TrialFailedError | None = None) -> Any:
    rates = [rate * (1 + 0.01 * number) for number in range(8)]
    return SimpleNamespace(
        examples_per_second=rate,
        rates=rates,
        turns=rates,
        memory=memory,
        problem=problem,
        ready=SimpleNamespace(compile_seconds=1.0),
        compared_with=lambda other: compare_rates(other.rates, rates),
    )


def task(quantity: Quantity) -> CureTask:
    return CureTask(TrialStart(Plan(), 23, Path("k3fp")), TrialStart(Plan(), 23, Path("k3fp")), quantity, {})


def test_a_speed_result_is_in_examples_a_second() -> None:
    found = speed_result(trial(100.0), trial(200.0), task(Quantity.SPEED))
    assert (found.before, found.after, found.unit, found.better) == (100.0, 200.0, "examples/s", True)
    assert found.text == (
        "200 examples/s with the changes, 100 without: faster, 2.00 to 2.00 times as fast. 8 rounds in turns, from "
        "the checkpoint of step 23; compiled in 1.0 and 1.0 s"
    )
    slower = speed_result(trial(200.0), trial(100.0), task(Quantity.SPEED))
    assert not slower.better
    assert "slower" in slower.text
    assert "no difference" in speed_result(trial(100.0), trial(101.0), task(Quantity.SPEED)).text


def test_a_memory_result_is_the_peak_and_out_of_memory_is_one() -> None:
    found = memory_result(trial(100.0, 4 * 2**30), trial(80.0, 2 * 2**30), task(Quantity.MEMORY))
    assert (found.before, found.after, found.unit, found.better) == (4.0, 2.0, "GiB", True)
    assert "slower" in found.text
    full = TrialFailedError("out of memory", out_of_memory=True)
    found = memory_result(trial(1.0, problem=full), trial(80.0, 2 * 2**30), task(Quantity.MEMORY))
    assert (found.before, found.after, found.better) == (math.inf, 2.0, True)
    assert "2.00 GiB with the changes, out of memory without" in found.text
    found = memory_result(trial(1.0, problem=full), trial(1.0, problem=full), task(Quantity.MEMORY))
    assert not found.better
    with pytest.raises(AccelError, match="with the changes cannot be tried: out of memory"):
        speed_result(trial(1.0), trial(1.0, problem=full), task(Quantity.SPEED))


def test_a_learning_result_is_the_metric() -> None:
    comparison = compare_losses([1.0, 1.1, 1.2], [0.5, 0.6, 0.7])
    found = learning_result(Learned("validation loss", 1.1, 0.6, comparison, 80), task(Quantity.LEARNING))
    assert (found.unit, found.better) == ("validation loss", True)
    assert found.low <= found.after <= found.high < found.before
    assert "After 80 steps from the checkpoint of step 23, in 3 orders of the examples" in found.text
    harm = compare_losses([0.5, 0.6, 0.7], [1.0, 1.1, 1.2])
    found = learning_result(Learned("validation loss", 0.6, 1.1, harm, 80), task(Quantity.LEARNING))
    assert not found.better
    assert "1.1 with the changes, 0.6 without: worse" in found.text
