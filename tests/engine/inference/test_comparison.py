"""What formats and precisions cost and gain, compared with the first."""

from dataclasses import replace
from typing import Any

import pytest

from accel_engine.inference.candidate import Candidate, HeldOutMetrics
from accel_engine.inference.comparison import comparisons
from accel_engine.inference.measurement.percentiles import Percentile

ON = HeldOutMetrics(values={"accuracy": 0.75, "loss": 1.0}, split="test", examples=4, source="a", fingerprint="f")


def candidate(model: str, batch: int, throughput: float, p99: float, **changes: Any) -> Candidate:
    described = {"model": model, "format": "tflite", "device": "cpu:0", "xla": False, "scenario": "multi-stream"}
    measured = {"throughput": throughput, "percentiles": {"p99": Percentile(p99, None, None)}, "metrics": ON}
    return Candidate(**{**described, "batch_size": batch, "size": 1000, **measured, **changes})


def with_accuracy(value: float | None, **changes: Any) -> HeldOutMetrics:
    return replace(ON, values={"accuracy": value, "loss": 0.5}, **changes)


def test_each_is_compared_with_its_best_batch_size() -> None:
    small = {"size": 250, "metrics": with_accuracy(0.5)}
    found = [
        candidate("a", 1, 100, 0.001),
        candidate("a", 8, 400, 0.01),
        candidate("b", 1, 200, 0.001, **small),
        candidate("b", 4, 800, 0.005, **small),
        candidate("b", 8, 900, 0.011, **small),
        candidate("b", 16, 0, 0, problem="out of memory"),
        candidate("a", 8, 1000, 0.01, format="keras", precision="mixed_bfloat16", size=0),
    ]
    smaller, other = comparisons(found, None)
    assert (smaller.first.batch_size, smaller.other.batch_size) == (8, 8)
    assert (smaller.throughput, smaller.size, smaller.metric_difference) == (2.25, 0.25, -0.25)
    assert (other.throughput, other.size, other.metric_difference) == (2.5, None, 0.0)
    within, missing = comparisons(found, 0.0099)
    assert (within.first.batch_size, within.other.batch_size, within.throughput) == (1, 4, 8)
    assert (within.meets_target, missing.meets_target) == (True, False)
    assert comparisons(found, 0.0001) == ()


def test_one_alone_is_compared_with_nothing() -> None:
    assert comparisons([], None) == ()
    assert comparisons([candidate("a", 1, 100, 0.001), candidate("a", 2, 100, 0.001, xla=True)], None) == ()


@pytest.mark.parametrize(
    "metrics",
    [
        None,
        with_accuracy(None),
        with_accuracy(0.5, fingerprint="g"),
        with_accuracy(0.5, examples=5),
        with_accuracy(0.5, fingerprint=""),
        replace(ON, values={"loss": 0.5}),
    ],
)
def test_metrics_of_other_examples_are_not_subtracted(metrics: HeldOutMetrics | None) -> None:
    (found,) = comparisons([candidate("a", 1, 1, 1), candidate("b", 1, 1, 1, metrics=metrics)], None)
    assert found.metric_difference is None


def test_streams_are_the_same_if_they_are_of_the_same_run_and_split() -> None:
    first, same, other = (replace(ON, fingerprint="", source=source) for source in ("a", "a", "b"))
    assert first.has_same_examples(same)
    assert not first.has_same_examples(other)
    assert not first.has_same_examples(replace(first, split="validation"))
