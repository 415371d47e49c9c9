"""How two plans that learn are compared: how many steps, in which orders, by which metric."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from accel_engine.errors import RunError
from accel_engine.measure.equal_examples import LEAST_STEPS, ORDERS, compare_learning
from accel_engine.measure.trial_statistics import PlanVerdict
from accel_engine.plan import Plan
from accel_engine.requests.try_plan import TrialReady, TrialStart, Turn


class Learner:
    """A trial whose loss follows from its steps and the seed."""

    def __init__(self, plan: Plan, loss: Callable[[int, int], float], **settings: Any) -> None:
        self.start = TrialStart(plan)
        per_epoch, has_orders = settings.get("steps_per_epoch", 100), settings.get("has_orders", True)
        self.ready = TrialReady(1.0, 1.0, plan.batch_size, per_epoch, ("CPU:0",), has_orders)
        self.rate, self.metrics = settings.get("rate", 100.0), settings.get("metrics")
        self.validation_seconds = settings.get("validation_seconds", 0.01)
        self.loss, self.process = loss, self
        self.asked: list[tuple[str, Any]] = []
        self.seed, self.steps = 0, 0

    def take_for(self, seconds: float) -> Turn:
        count = round(seconds * self.rate)
        return Turn(count, count * self.ready.global_batch, seconds, ())

    def restore(self, seed: int | None = None) -> None:
        self.seed = seed or 0
        self.asked.append(("seed", seed))

    def take(self, steps: int) -> Turn:
        self.steps = steps
        self.asked.append(("steps", steps))
        losses = tuple(self.loss(step, self.seed) for step in range(steps))
        return Turn(steps, steps * self.ready.global_batch, 1.0, losses)

    def validate(self) -> tuple[dict[str, float], float]:
        own = {"loss": self.loss(self.steps, self.seed), "accuracy": 0.5} if self.metrics is None else self.metrics
        return own, self.validation_seconds


def compare(first: Learner, second: Learner, seconds: float = 10.0, **options: Any) -> Any:
    return compare_learning(SimpleNamespace(trials=[first, second]), seconds, lambda *_: None, **options)


PLAN = Plan(epochs=5, batch_size=10, seed=7)


def slow(step: int, seed: int) -> float:
    return 2.0 - 0.001 * step + 0.01 * seed


def fast(step: int, seed: int) -> float:
    return 2.0 - 0.002 * step + 0.012 * seed


def test_both_train_the_same_steps_in_the_same_orders() -> None:
    first, second = Learner(PLAN, slow), Learner(PLAN, fast)
    found = compare(first, second)
    seeds = [("seed", 7 + number) for number in range(ORDERS)]
    assert [each for each in first.asked if each[0] == "seed"] == seeds
    assert first.asked == second.asked
    assert found.metric == "validation loss"
    assert found.comparison.verdict is PlanVerdict.BETTER
    assert found.after < found.before
    assert found.steps == int(0.7 * 10 * 100 / (2 * ORDERS))


def test_another_batch_size_takes_as_many_examples() -> None:
    first, second = Learner(PLAN, slow), Learner(PLAN.replace(batch_size=20), fast)
    compare(first, second)
    steps = [dict([each])["steps"] for each in first.asked if each[0] == "steps"]
    assert [dict([each])["steps"] for each in second.asked if each[0] == "steps"] == [round(n / 2) for n in steps]


def test_no_trial_trains_longer_than_the_run() -> None:
    assert compare(Learner(PLAN, slow, rate=1e6), Learner(PLAN, fast, rate=1e6)).steps == 500
    assert compare(Learner(PLAN, slow, rate=0.1), Learner(PLAN, fast, rate=0.1)).steps == LEAST_STEPS
    stream = {"steps_per_epoch": 0, "has_orders": False}  # of unknown length
    assert compare(Learner(PLAN, slow, **stream), Learner(PLAN, fast, **stream)).steps == int(0.7 * 10 * 100 / 2)


def test_without_validation_the_last_losses_are_compared() -> None:
    found = compare(Learner(PLAN, slow, metrics={}), Learner(PLAN, fast, metrics={}))
    assert (found.metric, found.comparison.verdict) == ("loss", PlanVerdict.BETTER)
    found = compare(Learner(PLAN, slow, validation_seconds=9.0), Learner(PLAN, fast))
    assert found.metric == "loss"


def test_one_order_is_all_there_is_of_a_stream() -> None:
    found = compare(Learner(PLAN, slow, has_orders=False), Learner(PLAN, fast, has_orders=False))
    assert (found.comparison.rounds, found.comparison.verdict) == (1, PlanVerdict.NO_DIFFERENCE)


def test_shuffled_examples_are_compared_with_their_one_order_without() -> None:
    found = compare(Learner(PLAN, slow, has_orders=False), Learner(PLAN, fast))
    assert (found.comparison.rounds, found.comparison.verdict) == (ORDERS, PlanVerdict.BETTER)


def test_a_loss_that_is_not_finite_is_worse() -> None:
    found = compare(Learner(PLAN, slow), Learner(PLAN, lambda *_: math.nan))
    assert found.comparison.verdict is PlanVerdict.WORSE
    assert math.isnan(found.after)


def test_other_losses_are_compared_by_another_metric() -> None:
    found = compare(
        Learner(PLAN, slow, metrics={"loss": 1.0, "accuracy": 0.5, "f1": 0.4}),
        Learner(PLAN, slow, metrics={"loss": 0.1, "accuracy": 0.5, "f1": 0.4}),
        by_loss=False,
    )
    assert (found.metric, found.comparison.verdict) == ("validation accuracy", PlanVerdict.NO_DIFFERENCE)
    balanced = compare(
        Learner(PLAN, slow, metrics={"loss": 1.0, "accuracy": 0.97, "f1_score": 0.0}),
        Learner(PLAN, slow, metrics={"loss": 1.0, "accuracy": 0.9, "f1_score": 0.4}),
        by_loss=False,
        preferred="f1_score",
    )
    assert (balanced.metric, balanced.before) == ("validation f1 score", 0.0)
    with pytest.raises(RunError, match="no other metric"):
        compare(Learner(PLAN, slow, metrics={"loss": 1.0}), Learner(PLAN, slow, metrics={"loss": 1.0}), by_loss=False)
