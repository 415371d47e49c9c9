"""What a trial says; without engines."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine.advice.cures.cure_task import CureTask, Quantity
from accel_engine.errors import AccelError
from accel_engine.measure.equal_examples import Learned
from accel_engine.measure.trial_process import TrialFailedError
from accel_engine.measure.trial_statistics import compare_losses
from accel_engine.plan import Plan
from accel_engine.race.configuration import ConfigurationState
from accel_engine.race.cure_race import learning_race, memory_race, speed_race
from accel_engine.requests.try_plan import TrialStart


def trial(rate: float, memory: float | None = 1e9, problem: TrialFailedError | None = None) -> Any:
    rates = [rate * (1 + 0.01 * number) for number in range(8)]
    return SimpleNamespace(
        examples_per_second=rate,
        rates=rates,
        turns=rates,
        memory=memory,
        problem=problem,
        ready=SimpleNamespace(compile_seconds=1.0, on_cpu=True),
    )


def task(quantity: Quantity) -> CureTask:
    return CureTask(TrialStart(Plan(), 23, Path("k3fp")), TrialStart(Plan(), 23, Path("k3fp")), quantity, {"xla": "on"})


def test_a_speed_cure_is_raced_by_examples_a_second() -> None:
    found = speed_race(trial(100.0), trial(200.0), task(Quantity.SPEED))
    without, cure = found.results
    assert (without.title, cure.title) == ("this plan", "the cure")
    assert (without.examples_per_second, cure.examples_per_second) == (103.5, 207.0)
    assert cure.against_reference
    assert cure.against_reference.value == 2.0
    assert (cure.compile_seconds, cure.memory, cure.memory_of) == (1.0, 1e9, "host")
    assert found.is_better
    assert found.how == "8 rounds in turns, from the checkpoint of step 23"
    assert not speed_race(trial(200.0), trial(100.0), task(Quantity.SPEED)).is_better
    assert not speed_race(trial(100.0), trial(101.0), task(Quantity.SPEED)).is_better


def test_a_memory_cure_is_raced_by_the_peak_and_out_of_memory_is_one() -> None:
    found = memory_race(trial(100.0, 4 * 2**30), trial(80.0, 2 * 2**30), task(Quantity.MEMORY))
    assert [each.memory for each in found.results] == [4 * 2**30, 2 * 2**30]
    assert found.is_better
    assert found.results[1].against_reference
    assert found.results[1].against_reference.value == 0.8
    full = TrialFailedError("out of memory", out_of_memory=True)
    found = memory_race(trial(1.0, problem=full), trial(80.0, 2 * 2**30), task(Quantity.MEMORY))
    assert (found.results[0].state, found.results[0].reason) == (ConfigurationState.FAILED, "out of memory")
    assert (found.results[1].memory, found.is_better) == (2 * 2**30, True)
    found = memory_race(trial(1.0, problem=full), trial(1.0, problem=full), task(Quantity.MEMORY))
    assert not found.is_better
    with pytest.raises(AccelError, match="does not tell how much memory"):
        memory_race(trial(1.0, None), trial(1.0), task(Quantity.MEMORY))
    with pytest.raises(AccelError, match="with the changes cannot be tried: out of memory"):
        speed_race(trial(1.0), trial(1.0, problem=full), task(Quantity.SPEED))


def test_a_learning_cure_is_raced_by_the_metric() -> None:
    comparison = compare_losses([1.0, 1.1, 1.2], [0.5, 0.6, 0.7])
    found = learning_race(Learned("validation loss", 1.1, 0.6, comparison, 80), task(Quantity.LEARNING))
    without, cure = (each.learned for each in found.results)
    assert without
    assert cure
    assert cure.between
    assert (cure.metric, without.value, cure.value, found.is_better) == ("validation loss", 1.1, 0.6, True)
    assert cure.between[0] <= cure.value <= cure.between[1] < without.value
    assert found.how == "after 80 steps from the checkpoint of step 23, in 3 orders of the examples"
    once = learning_race(Learned("loss", 1.0, 0.5, compare_losses([1.0], [0.5]), 80), task(Quantity.LEARNING))
    assert not once.is_better
    assert once.how.endswith("in one order of the examples, so that the difference may be chance")
    harm = compare_losses([0.5, 0.6, 0.7], [1.0, 1.1, 1.2])
    assert not learning_race(Learned("validation loss", 0.6, 1.1, harm, 80), task(Quantity.LEARNING)).is_better
    broken = compare_losses([math.nan], [1.0])
    found = learning_race(Learned("loss", math.nan, 1.0, broken, 80), task(Quantity.LEARNING))
    assert found.is_better
    (_, cured) = found.results
    assert cured.learned
    assert cured.learned.between is None
