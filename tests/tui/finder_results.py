"""What the finders might find."""

from dataclasses import replace

import numpy as np

from accel_engine.finders.learning_rate_finder import FoundRate
from accel_engine.finders.rate_curve import Ramp, ramp_rates
from accel_engine.finders.rate_suggestions import PREFERRED, Rule, suggest
from accel_engine.finders.throughput import FoundSize, MeasuredSize, choose_sizes
from accel_engine.plan import Plan
from accel_engine.requests.try_plan import TrialReady

GIB = 1 << 30


def ramps() -> tuple[Ramp, ...]:
    """Three ramps of a model that trains well at 0.005."""
    rates = tuple(ramp_rates(1e-6, 10.0, 120))[:100]
    found = []
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(size=len(rates))
        losses = (
            0.3 + 2 / (1 + rate / 1e-3) + (rate / 0.5) ** 2 + 0.03 * each
            for rate, each in zip(rates, noise, strict=True)
        )
        found.append(Ramp(seed, rates, tuple(losses), has_exploded=True))
    return tuple(found)


def found_rate() -> FoundRate:
    """A learning rate that was found."""
    made = ramps()
    losses = {rule: 0.25 if rule is PREFERRED else 0.5 for rule in Rule}
    return FoundRate(suggest(made), made, 1.0, 0, 0.001, compared=losses, compared_steps=100)


def nothing_found() -> FoundRate:
    """Ramps that suggest nothing."""
    flat = Ramp(0, tuple(ramp_rates(1e-6, 10.0, 120)), (2.3,) * 120, has_exploded=False)
    return FoundRate(suggest((flat,)), (flat,), 1.0)


def found_size() -> FoundSize:
    """A batch size that was found: 128, of the plan's 32."""
    figures = ((16, 2e3, 0.2), (32, 4e3, 0.25), (64, 6e3, 0.4), (128, 9.2e3, 0.7), (256, 1e4, 1.3))
    measured = tuple(
        MeasuredSize(size, size, rate, 0.98 * rate, 1.02 * rate, memory * GIB) for size, rate, memory in figures
    )
    plan = Plan(batch_size=32)
    ready = TrialReady(1.0, 1.0, 128, 12, ("CPU:0",), True, 1, 0.001, "Adam", 1437)
    found = FoundSize(
        measured,
        choose_sizes(measured, 8.0 * GIB),
        measured[3],
        None,
        1,
        8.0 * GIB,
        "larger ones are slower",
        plan,
        ready,
    )
    return replace(found, effects=found.effects_of(128))
