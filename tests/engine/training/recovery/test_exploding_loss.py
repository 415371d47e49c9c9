"""A loss that explodes is found, and healthy losses of any kind are not taken for one."""

import math
from collections.abc import Callable, Container, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel_engine.data.dataset import Split
from accel_engine.plan import Plan
from accel_engine.run import RunWriter, create
from accel_engine.training.recovery.loss_watch import (
    CUSTOM_FACTOR,
    FACTOR,
    ExplodingLoss,
    Explosion,
    LossWatch,
    NotANumberError,
)
from accel_engine.training.reporting.run_reporter import RunReporter
from recorded_run import started

STEPS = 2000
STEP = np.arange(STEPS)
SCALES = [1e-6, 1.0, 1e6]


def found(
    losses: np.ndarray, chunk: int = 7, factor: float = FACTOR, first: int = 0, in_order: float = 0
) -> Explosion | None:
    """The explosion of some losses, added in chunks."""
    rule = ExplodingLoss(first, factor, in_order)
    for start in range(0, len(losses), chunk):
        if explosion := rule.add(losses[start : start + chunk].astype(np.float32)):
            return explosion
    return None


def decay(random: np.random.Generator) -> np.ndarray:
    return 2.3 * np.exp(-STEP / 200) + 0.01 + 0.005 * random.standard_normal(STEPS)


HEALTHY: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "a decay to a thousandth": decay,
    "a decay over many orders": lambda _: 1e6 * np.exp(-STEP / 60) + 1e-3,
    "a constant": lambda _: np.full(STEPS, 0.7),
    "zeros, then a loss": lambda _: np.where(STEP < 400, 0.0, 1.0),
    "heavy tails": lambda random: np.abs(random.standard_cauchy(STEPS)),
    "spikes of ten steps": lambda random: decay(random) + 1e5 * (STEP % 300 > 289),
    "negative, to a minimum": lambda random: -50 + 48 * np.exp(-STEP / 200) + random.standard_normal(STEPS),
    "around zero": lambda random: random.standard_normal(STEPS),
    "a random walk": lambda random: np.cumsum(random.standard_normal(STEPS)),
    "from below zero to above": lambda _: np.linspace(-1, 30, STEPS),
    "a jump that falls again": lambda _: 0.01 + np.where(STEP < 777, 0.0, 1e5 * 0.9 ** (STEP - 777.0)),
    "a rise at the start": lambda _: 0.1 + 500 * np.exp(-((STEP - 60) ** 2) / 800),
    "the warm-up of a learning rate": lambda random: decay(random) + 8 * np.exp(-((STEP - 300) ** 2) / 5000),
    "a crossentropy that becomes clipped": lambda _: np.where(STEP < 500, 0.3, 14.5),
    "a discriminator that wins": lambda _: 0.7 + 15.4 / (1 + np.exp(-(STEP - 500) / 8)),
    "a critic": lambda random: np.cumsum(STEP / 100 * random.standard_normal(STEPS)),
    "slow growth": lambda _: 1.01**STEP,
    "epochs of sorted examples": lambda _: 1e-3 + (STEP % 500 / 500) ** 4,
    "harder data": lambda random: np.where(STEP < 600, 0.02, 1.0) * np.abs(random.standard_normal(STEPS)),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_losses_do_not_explode(name: str, scale: float) -> None:
    for seed in range(2):
        assert found(scale * HEALTHY[name](np.random.default_rng(seed))) is None


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("chunk", [7, 1000])
@pytest.mark.parametrize("growth", [1.08, 1.2, 2.0])
def test_a_growing_loss_explodes(growth: float, chunk: int, scale: float) -> None:
    losses = decay(np.random.default_rng(0))[:1200]
    after = np.minimum(losses[-1] * growth ** np.arange(400), 1e20)
    explosion = found(scale * np.concatenate([losses, after]), chunk)

    assert explosion is not None
    assert 1200 <= explosion.step <= 1290  # where it exceeds what it was at the start
    assert explosion.loss > 100 * explosion.level


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("before", ["a decay to a thousandth", "negative, to a minimum", "around zero", "a constant"])
def test_a_jump_explodes(before: str, scale: float) -> None:
    losses = HEALTHY[before](np.random.default_rng(0))
    losses[777:] = 1e5
    explosion = found(scale * losses, first=5000)

    assert explosion is not None
    assert explosion.step == 5777


@pytest.mark.parametrize("in_order", [1000, math.inf])
@pytest.mark.parametrize("scale", SCALES)
def test_other_examples_are_no_explosion_before_they_are_known(in_order: float, scale: float) -> None:
    """Two data sets one after the other, whose targets differ by a factor of 30."""
    losses = np.where(STEP < 500, 0.01 + np.exp(-STEP / 50), 900 + np.cos(STEP))
    assert found(scale * losses) is not None
    assert found(scale * losses, in_order=in_order) is None

    grows = np.where(STEP < 500, losses, np.minimum(1.1 ** (STEP - 500.0), 1e20))
    assert found(scale * grows, in_order=in_order) is not None


def test_a_custom_step_needs_more() -> None:
    losses = np.where(STEP < 500, 0.5, 500.0)

    assert found(losses) is not None
    assert found(losses, factor=CUSTOM_FACTOR) is None
    assert found(np.where(STEP < 500, 0.5, 5e4), factor=CUSTOM_FACTOR) is not None


def test_losses_that_are_not_finite_are_left_out() -> None:
    losses = decay(np.random.default_rng(0))
    losses[::3] = np.nan

    assert found(losses) is None


def test_where_losses_that_end_in_nan_grew_from() -> None:
    rule = ExplodingLoss(100)
    rule.add(decay(np.random.default_rng(0)).astype(np.float32))
    assert rule.grew_from is None  # all of a sudden
    rule.add((3.0 ** np.arange(30)).astype(np.float32))
    assert rule.grew_from == 100 + STEPS + 0

    fast = ExplodingLoss(0)
    fast.add((4.0 ** np.arange(30)).astype(np.float32))
    assert fast.grew_from is not None
    assert fast.grew_from < 10


@pytest.mark.parametrize("skipped", [{50}, {1150}, {50, 1150, 1215}])
def test_skipped_steps_do_not_shift_the_step_of_an_explosion(writer: RunWriter, skipped: set[int]) -> None:
    losses = decay(np.random.default_rng(0))[:1200]
    losses = np.concatenate([losses, losses[-1] * 1.5 ** np.arange(60)])
    assert explosion_seen(writer, losses, skipped) == explosion_seen(writer, losses) is not None


def test_a_continued_run_knows_how_high_its_loss_was(writer: RunWriter) -> None:
    """A jump from 1e-9 back to below the first losses, as Adam's with a high learning rate, is no explosion."""
    fitted = np.full(400, 1e-9)
    after = np.concatenate([fitted, np.ones(400)])
    assert explosion_seen(writer, after) == 400

    before = np.concatenate([decay(np.random.default_rng(0)), fitted])
    before[::7] = np.nan
    writer.write_chunk(0, 0.0, 1.0, {"loss": before})
    assert explosion_seen(writer, after, first=len(before)) is None
    assert explosion_seen(writer, 1e6 * after, first=len(before)) == len(before) + 400


def test_losses_that_explode_where_a_run_is_continued_are_not_usual(writer: RunWriter) -> None:
    before, exploded = np.full(400, 1e-9), np.ones(60)
    writer.write_chunk(0, 0.0, 1.0, {"loss": np.concatenate([before, exploded])})

    assert explosion_seen(writer, np.concatenate([before, exploded]), first=460) == 860


def test_a_run_continues_without_the_records_of_its_steps(writer: RunWriter) -> None:
    """Test a new worker, which takes the chief's checkpoint, or a run of which only the checkpoints could be saved."""
    exploding = np.concatenate([np.full(400, 1e-9), np.ones(400)])
    assert explosion_seen(writer, exploding, first=460) == 860


@pytest.fixture
def writer() -> Iterator[RunWriter]:
    with closing(RunWriter(create(Plan()))) as writer:
        writer.begin(started())
        yield writer


def explosion_seen(writer: RunWriter, losses: np.ndarray, skipped: Container[int] = (), first: int = 0) -> int | None:
    """The step from which on a run that continues from a step sees its losses explode; ``None`` if it does not."""
    run: Any = SimpleNamespace(
        plan=Plan(shuffle="on"),
        model=SimpleNamespace(optimizer=None),
        dataset=SimpleNamespace(train=Split(np.zeros(64))),
        step_counts=None,
        has_custom_train_step=True,
    )
    reporter = RunReporter(writer, first)
    watch = LossWatch(run, reporter)
    for step, loss in enumerate(losses, first):
        reporter.step = step + 1
        try:
            watch.skip() if step in skipped else watch.observe({"loss": np.array([loss], np.float32)})
        except NotANumberError as error:
            return error.trouble.step
    return None
