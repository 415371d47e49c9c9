import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from accel_engine.advice import Finding, Recorded, find_troubles, quality
from accel_engine.advice.quality.learning import learning_of
from accel_engine.advice.quality.regularization import LARGEST_DECAY, weight_decay
from accel_engine.events import (
    EpochEnded,
    LearningRateChanged,
    Outcome,
    PartStarted,
    Phase,
    PhaseChanged,
    Recovered,
    RunEnded,
)
from accel_engine.plan import DEFAULTS, Plan
from accel_engine.run.diagnostics import DataProfile, InputProfile, Shift
from accel_engine.run.store.steps import TIME

from .recorded_example import MINUTE, classified, falling, flat, in_buckets, learned
from .records import started

CHANCE = math.log(10)

EVEN = (100,) * 10

GOOD = DataProfile(
    1000,
    200,
    64,
    InputProfile(0.0, 1.0, 0.3, 0.4, 0.0),
    InputProfile(0.0, 1.0, 0.3, 0.4, 0.0),
    0,
    classes=EVEN,
    validation_classes=(20,) * 10,
    neighbours=0.95,
    neighbours_chance=0.1,
    neighbours_examples=1000,
    compared=1000,
    compared_validation=200,
    of_examples=1000,
    class_runs=0.1,
)
"""Data that can be learned."""

NUMBERS = DataProfile(
    1000, 200, 10, GOOD.inputs, GOOD.inputs, 0, target_mean=0.0, target_deviation=1.0, target_low=-2.0, target_high=2.0
)

NOT_FINITE = replace(GOOD, inputs=InputProfile(0, 1, 0, 1, 0.01), validation_inputs=None)

REGRESSION = {"loss": "mean_squared_error", "task": "regression", "classes": 0, "outputs": "float32 1"}

RISING = np.minimum(0.95, 0.1 + np.arange(200) / 100)


def profiled(base: DataProfile = GOOD, **changes: Any) -> DataProfile:
    return replace(base, **changes)


def found(run: Recorded) -> list[Finding]:
    return [finding for rule in quality.RULES for finding in rule(run)]


def ids(run: Recorded) -> list[str]:
    return [finding.id for finding in found(run)]


def exploding(peak: float = 50.0, end: float = 2.2) -> np.ndarray:
    values = np.asarray(flat(200, end))
    values[0] = CHANCE
    values[2:12] = peak
    return values


def with_nan(first: int, last: int | None = None, steps: int = 400) -> np.ndarray:
    """A healthy loss of which one step, or those from the first to the last one, are not finite."""
    values = np.array(falling(steps))
    values[first : (first if last is None else last) + 1] = math.nan
    return values


def saw_tooth(every: int = 40, epochs: int = 5) -> np.ndarray:
    """A loss that rises and falls in each epoch, as classes change."""
    wave = 0.5 * np.sin(np.arange(every * epochs) % every / every * 4 * math.pi)
    return np.asarray(falling(every * epochs, 2.3, 1.0)) + wave


OVERCOME = np.concatenate([[CHANCE], np.full(5, 9.0), falling(200)])
"""A loss that the first updates make four times larger."""

USUAL, HIGH = np.full(206, 1e-3), np.full(206, 0.1)
"""Learning rates of Adam."""


def varying(slope: float, level: float = 0.4, count: int = 50) -> np.ndarray:
    """A metric that settles, is noisy, and rises after 8 validations."""
    at = np.arange(count)
    falls = level + 0.6 * np.exp(-at / 3) * (level < 0.5) + slope * np.maximum(0, at - 8)
    return np.asarray(falls + 0.04 * np.random.default_rng(1).normal(size=count))


def vanishing(norm: float) -> Recorded:
    """A run whose first layer has gradients of a norm, and whose last layer has some of norm 1."""
    norms = {"": 1.0, "_a": norm, "_b": 1e-3, "_c": 1.0}
    return learned(flat(100), **{f"gradient_norm{layer}": np.full(100, each) for layer, each in norms.items()})


def failed(reason: str) -> RunEnded:
    return RunEnded(time=9.0, outcome=Outcome.FAILED, steps=1, epochs=0, seconds=1.0, reason=reason)


HEALTHY: dict[str, Recorded] = {
    "nothing is known": learned(),
    "one step": learned([2.3]),
    "it learns": learned(falling(), accuracy=RISING, profile=GOOD, validation={"loss": falling(10, pace=2)}),
    "two epochs": learned(falling(40, 2.3, 1.6, 20), profile=GOOD, validation={"loss": [2.1, 1.8]}),
    "it converges to noise": learned(falling(600, 2.3, 1.2, 30, noise=0.1), profile=profiled(neighbours=0.5)),
    "a mild gap": learned(falling(400), validation={"loss": [1.2, 0.7, 0.5, 0.45, 0.42, 0.43, 0.42, 0.43, 0.42, 0.43]}),
    "the loss of validation rises a little, accuracy does not fall": learned(
        falling(400),
        accuracy=np.full(400, 0.9),
        validation={"loss": [0.6, 0.4, 0.3, 0.31, 0.33, 0.36], "accuracy": [0.8, 0.85, 0.9, 0.9, 0.91, 0.91]},
    ),
    "fine-tuning begins low": learned(flat(300, 0.3), accuracy=np.full(300, 0.9), profile=GOOD),
    "weights are given": learned(flat(300), accuracy=flat(300, 0.1), settings={"initial_weights": "a-run"}),
    "a log-likelihood below 0": learned(falling(300, 5.0, -100.0, 60, noise=1.0), kind="script"),
    "two losses compete": learned(flat(300), kind="script", built={"task": ""}, d_loss=flat(300), g_loss=flat(300)),
    "a long run with a schedule": learned(
        flat(400, 1.0) + np.asarray(falling(400, 1.3, 0.0, 20, 0.0)),
        learning_rate=np.linspace(1e-3, 1e-5, 400),
        **{TIME: np.arange(400) * 10.0},
    ),
    "dropout makes training harder": learned(
        falling(end=0.8),
        accuracy=np.full(200, 0.7),
        validation={"loss": [0.5, 0.3, 0.2, 0.2], "accuracy": [0.9, 0.95, 0.95, 0.95]},
        layers=["Dense", "Dropout"],
    ),
    "rewards count": learned(flat(300), kind="script", built={"task": ""}, episode_reward=falling(300, 0, 200)),
    "a script leaves steps out": learned(
        np.where(np.arange(300) % 10, np.nan, np.asarray(falling(300))), kind="script", built={"task": ""}
    ),
    "unusual batches": learned(
        np.asarray(falling(500)) * np.where(np.arange(500) % 60 == 50, 8.0, 1.0), batch_size=np.full(500, 1.0)
    ),
    "rows of a table repeat": learned(
        falling(),
        profile=profiled(features=4, duplicates=500, leaked=120, conflicts=100),
    ),
    "an early explosion that was overcome, at a usual rate": learned(OVERCOME, profile=GOOD, learning_rate=USUAL),
    "a model that gives numbers in the units of large targets": learned(
        falling(200, 2e7, 6e6),
        profile=profiled(NUMBERS, target_mean=5e4, target_deviation=3e3),
        built=REGRESSION,
        layers=["Dense", "Normalization", "Reshape"],
    ),
    "one validation was better than the baseline": learned(
        falling(400), validation={"accuracy": [0.3, 0.6, 0.5]}, baseline={"accuracy": 0.5}
    ),
    "weights of classes cost accuracy": learned(
        falling(400),
        validation={"accuracy": [0.3, 0.4, 0.5]},
        baseline={"accuracy": 0.5},
        settings={"class_weight": "balanced"},
    ),
    "a live run that has only begun": learned(
        falling(400), validation={"accuracy": [0.3, 0.4]}, baseline={"accuracy": 0.5}, live=True
    ),
    "the absolute error of a model that learns medians is smaller than the baseline's": learned(
        falling(400),
        validation={"mean_absolute_error": [11.0], "root_mean_squared_error": [16.0]},
        baseline={"mean_absolute_error": 11.1, "root_mean_squared_error": 15.0, "r2_score": 0.2},
        built={**REGRESSION, "loss": "mean_absolute_error"},
    ),
    "validation that only varies": learned(
        falling(1000, 2.3, 0.05, 100), every=20, validation={"loss": varying(0.0), "accuracy": varying(0.0, 0.85)}
    ),
    "time series differ in time, and validation is fine": learned(
        falling(end=0.3), profile=profiled(shift=Shift("a", 0.8, 10.0, 30)), validation={"loss": [0.5, 0.3]}
    ),
    "long without better validation, but in seconds": learned(
        falling(1000), every=50, validation={"loss": [1.0, *[0.5] * 19]}, seconds=0.5
    ),
    "rare classes are found": learned(
        falling(),
        profile=profiled(classes=(900, 30), validation_classes=(180, 6)),
        built={"classes": 2},
        report=classified([[180, 0], [1, 5]], {199: 185}, {150: 1}),
    ),
    "one skipped step of a long run": in_buckets(
        learned(with_nan(200), settings={"skip_steps": ("200",)}, profile=GOOD), 8
    ),
    "a skipped last step": learned(with_nan(399), settings={"skip_steps": ["399"]}, profile=GOOD),
    "one infinite loss of a long run with mixed_float16": in_buckets(
        learned(with_nan(397), built={"precision": "mixed_float16"}, profile=GOOD), 8
    ),
    "an infinite last loss with mixed_float16": learned(
        with_nan(399), built={"precision": "mixed_float16"}, profile=GOOD
    ),
    "a damaged list of skipped steps": learned(falling(), settings={"skip_steps": 7}, profile=GOOD),
    "a model that handles inputs that are not finite": learned(falling(), profile=NOT_FINITE),
    "a loss of one's own with dummy targets": learned(
        falling(), profile=profiled(NUMBERS, target_deviation=0.0), built={**REGRESSION, "loss": "energy"}
    ),
    "rare events, of which a sample has none": learned(
        falling(), profile=profiled(NUMBERS, target_deviation=0.0, of_examples=90_000), built=REGRESSION
    ),
    "a penalty of weights, without an accuracy": learned(falling(200, 40.0, 5.0)),
    "a term of the loss that is annealed in": learned(
        np.concatenate([falling(200), np.linspace(0.2, 4.0, 200)]), accuracy=np.linspace(0.5, 0.9, 400)
    ),
    "a term of the loss that is annealed in, with a metric of validation": learned(
        np.concatenate([falling(200), np.linspace(0.2, 4.0, 200)]),
        validation={"accuracy": [0.5, 0.7, 0.8, 0.8]},
        built={"monitor": "validation_accuracy", "loss": "own", "task": "custom"},
    ),
    "a cycle of the rate in each epoch": learned(
        saw_tooth(), every=40, kind="script", learning_rate=np.tile(1e-3 * np.abs(np.linspace(-1, 1, 40)), 5)
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_a_healthy_run(name: str) -> None:
    assert ids(HEALTHY[name]) == []


FAULTS: dict[str, tuple[Recorded, str]] = {
    "low rate": (
        learned(falling(200, 2.35, 2.25, 400), learning_rate=np.full(200, 1e-5), profile=GOOD),
        "learning-rate-low",
    ),
    "high rate": (learned(exploding(), learning_rate=np.full(200, 0.3), profile=GOOD), "learning-rate-high"),
    "a high rate that was overcome": (
        learned(OVERCOME, profile=GOOD, learning_rate=HIGH, validation={"loss": [0.5, 0.3]}),
        "learning-rate-high",
    ),
    "a high rate with which nearest neighbours know more": (
        learned(falling(400, 2.3, 0.7, 30), accuracy=np.full(400, 0.7), profile=GOOD, learning_rate=np.full(400, 0.1)),
        "learning-rate-high",
    ),
    "a high rate with momentum": (
        learned(OVERCOME, settings={"momentum": 0.9}, built={"optimizer": "SGD"}, learning_rate=np.full(206, 0.5)),
        "learning-rate-high",
    ),
    "high rate of a script that does not log it": (
        learned(exploding(), kind="script", accuracy=np.full(200, 0.1)),
        "learning-rate-high",
    ),
    "labels shuffled": (
        learned(
            falling(200, 2.4, 2.2), profile=profiled(neighbours=0.101), validation={"loss": [2.32, 2.31, 2.33, 2.34]}
        ),
        "labels-unrelated",
    ),
    "labels shuffled, in a script": (
        learned(
            falling(200, 2.35, 2.1),
            kind="script",
            accuracy=np.linspace(0.1, 0.2, 200),
            validation={"loss": [2.31, 2.32, 2.32, 2.33, 2.34, 2.35], "accuracy": [0.1] * 6},
        ),
        "labels-unrelated",
    ),
    "inputs not finite": (learned(profile=NOT_FINITE), "data-not-finite"),
    "inputs and losses not finite": (learned([math.nan] * 40, profile=NOT_FINITE), "data-not-finite"),
    "inputs not finite, and nothing is learned": (learned(flat(), profile=NOT_FINITE), "data-not-finite"),
    "inputs alike": (learned(flat(), profile=profiled(constant_features=64)), "inputs-alike"),
    "targets alike": (learned(profile=profiled(classes=(1000, 0))), "targets-alike"),
    "targets of a regression alike": (
        learned(profile=profiled(NUMBERS, target_deviation=0.0), built=REGRESSION),
        "targets-alike",
    ),
    "initial loss": (
        learned(falling(200, 40.0, 5.0, 20), accuracy=np.full(200, 0.2)),
        "initial-loss-high",
    ),
    "inputs not scaled": (
        learned(
            falling(200, 300, 5),
            profile=profiled(inputs=InputProfile(0, 255, 80, 90, 0), validation_inputs=None),
            layers=["Dense"],
        ),
        "inputs-not-scaled",
    ),
    "targets not scaled": (
        learned(flat(200, 9e6), profile=profiled(NUMBERS, target_mean=5e4, target_deviation=3e3), built=REGRESSION),
        "targets-not-scaled",
    ),
    "logits as probabilities": (learned(built={"activation": "linear", "from_logits": False}), "wrong-output"),
    "probabilities as logits": (learned(built={"activation": "softmax", "from_logits": True}), "wrong-output"),
    "one softmax": (learned(built={"activation": "softmax", "outputs": "float32 1"}), "wrong-output"),
    "out of range": (learned(profile=NUMBERS, built={**REGRESSION, "activation": "sigmoid"}), "wrong-output"),
    "negative targets of relu": (
        learned(profile=profiled(NUMBERS, target_high=0.5), built={**REGRESSION, "activation": "relu"}),
        "wrong-output",
    ),
    "dead units": (
        learned(flat(), profile=GOOD, report=classified([[20] + [0] * 9] * 10, {20: 20}, {20: 180})),
        "constant-output",
    ),
    "vanishing gradients": (
        vanishing(1e-7),
        "vanishing-gradients",
    ),
    "exploding gradients": (
        learned(falling(300), gradient_norm=np.where(np.arange(300) % 70 == 69, 500.0, 1.0)),
        "exploding-gradients",
    ),
    "noisy gradients": (
        learned(
            falling(300),
            settings={"micro_batches": 4},
            gradient_norm=np.full(300, 1.0),
            gradient_norm_of_micro_batches=np.full(300, 1.98),
        ),
        "noisy-gradients",
    ),
    "a batch for which gradients have no noise": (
        learned(
            falling(300),
            settings={"micro_batches": 4},
            gradient_norm=np.full(300, 1.0),
            gradient_norm_of_micro_batches=np.full(300, 1.01),
        ),
        "batch-needlessly-large",
    ),
    "not a number": (learned([2.0, 1.9, 1.8, math.nan, math.nan]), "not-a-number"),
    "not a number from the first step": (learned([math.nan] * 20), "not-a-number"),
    "not a number in the middle of a bucket": (
        in_buckets(learned(with_nan(381, 399)), 8),
        "not-a-number",
    ),
    "failed within a bucket": (
        in_buckets(learned(with_nan(397, steps=398), more=[failed("the loss of step 397 is NaN")]), 8),
        "not-a-number",
    ),
    "not a number, in a script": (learned([2.0] * 50 + [math.nan] * 50, kind="script"), "not-a-number"),
    "recovered": (
        learned(
            falling(),
            more=[Recovered(time=1.0, trouble="not a number", step=10, failed_step=20, reason="", action="")],
        ),
        "not-a-number",
    ),
    "diverging": (
        learned(np.concatenate([falling(200), np.linspace(0.2, 4.0, 200)]), kind="script", built={"task": ""}),
        "diverging",
    ),
    "diverging, and forgetting": (
        learned(
            np.concatenate([falling(200), np.linspace(0.2, 4.0, 200)]),
            accuracy=np.concatenate([np.linspace(0.1, 0.9, 200), np.linspace(0.9, 0.2, 200)]),
        ),
        "diverging",
    ),
    "a loss of one's own that rises": (
        learned(np.concatenate([falling(200), np.linspace(0.2, 4.0, 200)]), built={"task": "custom", "loss": "own"}),
        "diverging",
    ),
    "spikes": (
        learned(np.asarray(falling(600)) * (1 + 20 * np.exp(-(np.arange(600) % 100) / 4) * (np.arange(600) > 90))),
        "loss-spikes",
    ),
    "flat": (learned(flat(300), kind="script", accuracy=flat(300, 0.1, 0.0)), "loss-flat"),
    "few updates": (
        learned(np.linspace(2.3, 2.2, 8), every=2, built={"examples": 1000, "steps_per_epoch": 2, "global_batch": 500}),
        "batch-too-large",
    ),
    "small statistics": (
        learned(falling(), layers=["Conv2D", "BatchNormalization"], built={"per_replica_batch": 2}),
        "batch-norm-small-batch",
    ),
    "micro-batches make statistics small": (
        learned(falling(), layers=["BatchNormalization"], settings={"micro_batches": 32}),
        "batch-norm-small-batch",
    ),
    "leak": (learned(falling(), profile=profiled(leaked=100)), "leak"),
    "duplicates": (learned(falling(), profile=profiled(duplicates=400)), "duplicates"),
    "another range": (
        learned(falling(), profile=profiled(validation_inputs=InputProfile(0, 255, 80, 90, 0))),
        "validation-shift",
    ),
    "other classes": (
        learned(falling(), profile=profiled(validation_classes=(100, 100) + (0,) * 8)),
        "validation-shift",
    ),
    "features shift": (
        learned(falling(), profile=profiled(shift=Shift("a", 0.8, 10.0, 30)), validation={"loss": [2.0, 1.9]}),
        "validation-shift",
    ),
    "forgotten shuffle": (
        learned(falling(), settings={"shuffle": "off"}, profile=profiled(class_runs=0.99)),
        "not-shuffled",
    ),
    "forgotten shuffle, and a loss that rises as classes change": (
        learned(
            np.concatenate([falling(200), np.linspace(0.2, 4.0, 200)]),
            settings={"shuffle": "off"},
            profile=profiled(class_runs=0.99),
        ),
        "not-shuffled",
    ),
    "accuracy of the most frequent class": (
        learned(falling(400), validation={"accuracy": [0.3, 0.5, 0.5]}, baseline={"accuracy": 0.5}),
        "below-baseline",
    ),
    "accuracy of the most frequent class, rounded to float32": (
        learned(
            falling(400),
            validation={"accuracy": [float(np.float32(2 / 9))] * 3},
            baseline={"accuracy": 2 / 9},
        ),
        "below-baseline",
    ),
    "errors above the last value's": (
        learned(
            falling(400),
            validation={"mean_absolute_error": [14.0, 11.0], "root_mean_squared_error": [18.0, 16.0]},
            baseline={"mean_absolute_error": 11.11, "root_mean_squared_error": 15.0, "r2_score": 0.2},
            built=REGRESSION,
        ),
        "below-baseline",
    ),
    "saw-tooth": (learned(saw_tooth(), every=40, kind="script"), "not-shuffled"),
    "overfitting": (
        learned(falling(400, pace=80), validation={"loss": [1.0, 0.7, 0.6, 0.65, 0.75, 0.85, 0.95, 1.1]}, every=50),
        "overfitting",
    ),
    "long without better validation": (
        learned(falling(1000), every=50, validation={"loss": [1.0, *[0.5] * 19]}, seconds=10 * MINUTE),
        "stopped-late",
    ),
    "plateau": (
        learned(flat(400, 1.0) + np.asarray(falling(400, 1.3, 0.0, 20, 0.0)), **{TIME: np.arange(400) * 10.0}),
        "plateau",
    ),
    "validation is easier": (
        learned(
            falling(end=0.8),
            accuracy=np.full(200, 0.7),
            validation={"loss": [0.5, 0.3, 0.2, 0.2], "accuracy": [0.9, 0.95, 0.95, 0.95]},
            layers=["Dense"],
        ),
        "validation-better",
    ),
    "too few examples": (
        learned(
            falling(), accuracy=np.full(200, 1.0), built={"examples": 60}, validation={"accuracy": [0.6], "loss": [1.5]}
        ),
        "too-few-examples",
    ),
    "imbalance": (
        learned(
            falling(end=0.1, start=0.7, pace=10),
            built={"classes": 2},
            profile=profiled(classes=(900, 30), validation_classes=(180, 6)),
            report=classified([[180, 0], [6, 0]], {190: 180}, {150: 6}),
        ),
        "imbalance",
    ),
    "underfitting": (
        learned(falling(400, 2.3, 1.9, 30), accuracy=np.full(400, 0.3), profile=GOOD),
        "underfitting",
    ),
    "label noise": (
        learned(
            falling(400, 2.3, 0.9, 30),
            accuracy=np.full(400, 0.8),
            profile=GOOD,
            report=classified(
                np.full((10, 10), 3) + 90 * np.eye(10, dtype=int), {190: 500, 170: 430}, {190: 140, 170: 130}
            ),
        ),
        "label-noise",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str) -> None:
    run, expected = FAULTS[name]

    assert ids(run) == [expected]


@pytest.mark.parametrize("name", FAULTS)
def test_a_finding_says_what_it_follows_from_and_what_to_do(name: str) -> None:
    run, _ = FAULTS[name]
    for finding in found(run):
        assert len(finding.title) <= 60
        assert all(evidence.text for evidence in finding.evidence)
        assert finding.cost
        assert finding.cures
        assert 0 < finding.weight <= 1
        assert all(field in DEFAULTS for cure in finding.cures for field in cure.changes)
        for evidence in finding.evidence:
            assert not evidence.steps or 0 <= evidence.steps[0] < evidence.steps[1]


def test_the_changes_of_cures_are_values_that_a_plan_takes() -> None:
    for run, _ in FAULTS.values():
        for finding in found(run):
            for cure in finding.cures:
                Plan(model="mlp").replace(**cure.changes)


@pytest.mark.parametrize("name", ["clip_norm", "global_clip_norm", "clip_value"])
def test_no_second_limit_of_gradients_is_offered(name: str) -> None:
    loss = np.concatenate([falling(200), np.linspace(0.2, 4.0, 200)])
    limited, unlimited = (learned(loss, kind=kind, settings={name: 1.0}) for kind in ("training", "script"))

    fields = [[field for cure in found(run)[0].cures for field in cure.changes] for run in (limited, unlimited)]

    assert "global_clip_norm" not in fields[0]
    assert "global_clip_norm" in fields[1]  # a script has no plan


def test_only_the_latest_part_of_a_script_counts() -> None:
    part = PartStarted(time=0.0, part=2, name="b", step=200, epoch=10)
    run = learned(np.concatenate([falling(), falling()]), kind="script", built={"task": ""}, more=[part])

    assert ids(run) == []


@pytest.mark.parametrize("as_series", [True, False])
def test_a_part_is_judged_by_its_own_learning_rate(as_series: bool) -> None:
    rates = {"learning_rate": np.repeat([0.5, 1e-3], 200)} if as_series else {}
    changed = [LearningRateChanged(time=0.0, step=step, learning_rate=rate) for step, rate in ((0, 0.5), (200, 1e-3))]
    part = PartStarted(time=0.0, part=2, name="b", step=200, epoch=10)
    run = learned(np.full(400, 2.3), kind="script", more=[part, *changed], **rates)

    assert learning_of(run).highest_rate == pytest.approx(1e-3)
    assert "learning-rate-high" not in ids(run)


def epochs_of(*steps: int) -> list[EpochEnded]:
    return [EpochEnded(time=0.0, epoch=1, step=step, metrics={"loss": 1.0}, seconds=1.0) for step in steps]


def part_of(number: int, step: int) -> PartStarted:
    return PartStarted(time=0.0, part=number, name="net", step=step, epoch=0)


@pytest.mark.parametrize(
    ("events", "evidence"),
    [
        ([part_of(1, 0), *epochs_of(6, 8, 10)], ["the first epoch has 6 batches, the 2 after it have 2"]),
        (
            [part_of(1, 0), *epochs_of(6, 8, 10, 12), part_of(2, 12), *epochs_of(18, 24, 30)],
            ["part 1 (net): the first epoch has 6 batches, the 3 after it have 2"],
        ),
        (
            [part_of(1, 0), *epochs_of(6, 6, 6), part_of(2, 6), *epochs_of(12, 14)],
            [
                "part 1 (net): the first epoch has 6 batches, the 2 after it have 0",
                "part 2 (net): the first epoch has 6 batches, the 1 after it have 2",
            ],
        ),
        ([part_of(1, 0), *epochs_of(6, 12), part_of(2, 12), *epochs_of(14, 16)], []),
        ([started(), *epochs_of(6, 12), started(first_step=12), *epochs_of(14, 16, 18)], []),
    ],
)
def test_the_epochs_of_each_part_of_a_script_are_compared(events: list[Any], evidence: list[str]) -> None:
    run = learned(kind="script")
    assert [each.text for finding in found(replace(run, events=events)) for each in finding.evidence] == evidence


@pytest.mark.parametrize(
    ("norm", "cost"),
    [
        (4e-4, "the gradient of layer a is 2500 times smaller than that of the last layers"),
        (1e-40, "the gradient of layer a is 1e40 times smaller than that of the last layers"),
        (0.0, "layer a has no gradient in half of the steps or more"),
    ],
)
def test_the_cost_of_vanishing_gradients_is_how_small_they_are(norm: float, cost: str) -> None:
    (finding,) = found(vanishing(norm))

    assert (finding.id, finding.cost) == ("vanishing-gradients", cost)


def test_the_cost_of_late_stopping_is_in_hours() -> None:
    (finding,) = found(FAULTS["long without better validation"][0])

    assert "h" in finding.title.split()
    assert finding.cures[0].changes == {"patience": 3, "restore_best": "on"}


@pytest.mark.parametrize("name", ["long without better validation", "plateau"])
def test_pauses_and_the_time_between_two_engines_are_no_training(name: str) -> None:
    """A run is paused, or trained longer on the next day: its own time is that of the first case."""
    run, half, day = FAULTS[name][0], 3000.0, 86400.0
    pause = [PhaseChanged(time=half, phase=Phase.PAUSED), PhaseChanged(time=half + day, phase=Phase.TRAINING)]
    before = PhaseChanged(time=half, phase=Phase.TRAINING)
    for between in (pause, [before, replace(started(first_step=run.steps), time=half + day)]):
        events = [each for each in run.events if each.time <= half]
        events += between + [replace(each, time=each.time + day) for each in run.events if each.time > half]
        times = run.of(TIME)
        moved = replace(times, mean=times.mean + day * (times.mean > half))
        stopped = replace(run, events=events, series={**run.series, TIME: moved})
        assert [each.evidence for each in found(stopped)] == [each.evidence for each in found(run)]
        assert [each.title for each in found(stopped)] == [each.title for each in found(run)]


@pytest.mark.parametrize(("optimizer", "rate"), [("Adam", 0.0028), ("SGD", 0.008)])
def test_a_larger_batch_has_a_learning_rate_to_match(optimizer: str, rate: float) -> None:
    built = {"per_replica_batch": 2, "global_batch": 2, "optimizer": optimizer}
    run = learned(falling(), layers=["Conv2D", "BatchNormalization"], built=built, learning_rate=np.full(200, 1e-3))
    (finding,) = found(run)
    assert finding.cures[0].changes == {"batch_size": 16, "learning_rate": rate}


def test_a_larger_batch_is_one_of_micro_batches_that_are_large_enough() -> None:
    built = {"per_replica_batch": 32, "global_batch": 32}
    run = learned(falling(), layers=["BatchNormalization"], built=built, settings={"micro_batches": 8})
    (finding,) = found(run)
    assert finding.cures[0].changes["batch_size"] == 8 * 16


def test_overfitting_is_cured_by_what_the_length_of_the_run_and_its_inputs_allow() -> None:
    (finding,) = found(FAULTS["overfitting"][0])
    assert [each.changes for each in finding.cures[1:]] == [{"optimizer": "adamw", "weight_decay": 2.0}]
    assert weight_decay(1e-3, 100_000) == 0.01
    assert weight_decay(1e-3, 10) > LARGEST_DECAY

    losses = {"loss": [1.0, 0.7, 0.6, 0.65, 0.75, 0.85, 0.95, 1.1]}
    images = {"optimizer": "SGD", "input_shape": (32, 32, 3)}
    (finding,) = found(learned(falling(400, pace=80), validation=losses, every=50, built=images))
    changes = {"optimizer": "adamw", "weight_decay": 2.0, "learning_rate": 1e-3}
    assert [each.changes for each in finding.cures[1:]] == [changes, {"augmentation": ("crop",)}]


def test_overfitting_names_the_step_since_which_it_is() -> None:
    (finding,) = found(FAULTS["overfitting"][0])

    assert finding.title == "Overfitting since step 150"
    assert finding.steps == (150, 401)


def test_a_finding_on_overfitting_does_not_come_and_go_as_validations_are_added() -> None:
    """Validations are noisy; the accuracy falls by about its noise."""
    losses, accuracies = varying(0.01), 0.85 - 0.01 * np.maximum(0, np.arange(50) - 8) / 3
    training = falling(1000, 2.3, 0.05, 100)

    judged = [
        ids(learned(training[: 20 * count], validation={"loss": losses[:count], "accuracy": accuracies[:count]}))
        for count in range(5, 51)
    ]

    assert "overfitting" not in judged[3]
    assert "overfitting" in judged[-1]
    assert sum((before == []) != (after == []) for before, after in itertools.pairwise(judged)) == 1


@pytest.mark.parametrize(("rate", "rates"), [(1e-5, [1e-3]), (1e-3, []), (0.01, [1e-3])])
def test_underfitting_is_cured_by_a_rate_towards_the_usual_one(rate: float, rates: list[float]) -> None:
    loss = falling(400, 2.3, 1.2, 30)
    run = learned(loss, accuracy=np.full(400, 0.3), profile=GOOD, learning_rate=np.full(400, rate))

    (finding,) = found(run)

    assert finding.id == "underfitting"
    assert [each.changes["learning_rate"] for each in finding.cures if each.changes] == rates


def test_no_better_than_the_baseline_is_the_first_finding() -> None:
    run = learned(
        exploding(),
        learning_rate=np.full(200, 0.3),
        profile=GOOD,
        validation={"accuracy": [0.1] * 10},
        baseline={"accuracy": 0.12},
    )

    first, second = find_troubles(run)

    assert (first.id, second.id) == ("below-baseline", "learning-rate-high")
    assert first.title == "No better than the most frequent class: b"
    assert first.evidence[0].text == (
        "accuracy is 0.1000 in validation, and 0.1200 by the baseline; no validation was better"
    )


def test_large_targets_and_losses_are_written_as_everywhere() -> None:
    (found,) = find_troubles(
        learned(flat(200, 9e6), profile=profiled(NUMBERS, target_mean=5e4, target_deviation=3e3), built=REGRESSION)
    )
    words = " ".join(each.text for each in found.evidence)
    assert "a mean of 50k and deviate by 3000" in words
    assert "e+0" not in words
    (cure,) = found.cures
    assert "keras.layers.Rescaling(3000, offset=5e+04)" in cure.text
    assert "tables" not in cure.text  # their targets are not standardised
