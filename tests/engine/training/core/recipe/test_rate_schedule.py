"""Learning rates of a plan's schedules, compared with their formulas."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from accel_engine.errors import PlanError
from accel_engine.plan import Plan
from accel_engine.training.core.recipe.rate_schedule import make_schedule

STEPS = 20


def cosine(low: float, high: float, share: float) -> float:
    return low + (high - low) * (1 + math.cos(math.pi * share)) / 2


FORMULAS: dict[str, tuple[dict[str, Any], Callable[[int], float]]] = {
    "constant with warm-up": ({"schedule": "constant", "warmup": 4}, lambda step: min(step / 4, 1)),
    "constant with one step of warm-up": ({"schedule": "constant", "warmup": 1}, lambda step: min(step, 1)),
    "cosine": ({"schedule": "cosine"}, lambda step: cosine(0, 1, step / 20)),
    "cosine with warm-up": (
        {"schedule": "cosine", "warmup": 0.2, "final_rate": 0.1},
        lambda step: step / 4 if step < 4 else cosine(0.1, 1, (step - 4) / 16),
    ),
    "cosine with warm-up to nothing": (
        {"schedule": "cosine", "warmup": 4},
        lambda step: step / 4 if step < 4 else cosine(0, 1, (step - 4) / 16),
    ),
    "linear": ({"schedule": "linear", "final_rate": 0.2}, lambda step: 1 - 0.8 * step / 20),
    "linear with warm-up": (
        {"schedule": "linear", "warmup": 4},
        lambda step: step / 4 if step < 4 else 1 - (step - 4) / 16,
    ),
    "exponential": ({"schedule": "exponential"}, lambda step: 0.01 ** (step / 20)),
    "exponential to a rate": ({"schedule": "exponential", "final_rate": 0.5}, lambda step: 0.5 ** (step / 20)),
    "one cycle": (
        {"schedule": "one-cycle"},
        lambda step: cosine(1, 0.04, step / 6) if step < 6 else cosine(0, 1, (step - 6) / 14),
    ),
    "one cycle with warm-up and a last rate": (
        {"schedule": "one-cycle", "warmup": 1, "final_rate": 0.1},
        lambda step: 0.04 if step < 1 else cosine(0.1, 1, (step - 1) / 19),
    ),
    "steps": (
        {"schedule": "steps", "warmup": 2, "rate_drops": ("25%", "50%"), "rate_drop_factor": 0.5},
        lambda step: step / 2 if step < 2 else 0.5 ** ((step > 5) + (step > 10)),
    ),
    "steps at the end of the warm-up": (
        {"schedule": "steps", "warmup": 2, "rate_drops": ("2",), "rate_drop_factor": 0.5},
        lambda step: step / 2 if step < 2 else 1 if step == 2 else 0.5,
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_each_step_has_the_rate_of_the_formula(name: str) -> None:
    fields, formula = FORMULAS[name]

    schedule = make_schedule(Plan(**fields), 0.5, STEPS)

    rates = [float(schedule(step)) for step in range(STEPS)]
    assert rates == pytest.approx([0.5 * formula(step) for step in range(STEPS)], abs=1e-6)


def test_a_constant_rate_needs_no_schedule() -> None:
    assert make_schedule(Plan(schedule="constant"), 0.5, 0) == 0.5


@pytest.mark.parametrize(
    "fields",
    [
        {"schedule": "cosine"},
        {"schedule": "steps", "rate_drops": ("25%", "50%")},
        {"schedule": "constant", "warmup": 0.1},
    ],
)
def test_a_share_of_unknown_steps_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="depends on the number of steps, which is unknown"):
        make_schedule(Plan(**fields), 0.5, 0)


@pytest.mark.parametrize(
    "fields", [{"schedule": "steps", "rate_drops": ("10",)}, {"schedule": "constant", "warmup": 1}]
)
def test_numbers_of_steps_do_for_unknown_ones(fields: dict[str, Any]) -> None:
    make_schedule(Plan(**fields), 0.5, 0)


@pytest.mark.parametrize("fields", [{"schedule": "constant", "warmup": 20}, {"schedule": "cosine", "warmup": 30}])
def test_a_warm_up_must_end_before_the_run(fields: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="must be below the 20 steps of the run"):
        make_schedule(Plan(**fields), 0.5, STEPS)


def test_a_rate_does_not_drop_before_the_warm_up_ends() -> None:
    with pytest.raises(PlanError, match="must be after the warm-up of 4 steps"):
        make_schedule(Plan(schedule="steps", warmup=4, rate_drops=("3",)), 0.5, STEPS)
