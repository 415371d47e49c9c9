"""Evaluates trained models on the same examples: metrics with confidence intervals, by class, and their differences."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.data_options import no_progress
from accel_engine.data.series.series_parts import span_of
from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.errors import DataError, ModelError
from accel_engine.keras_support.model_structure import fixed_batch
from accel_engine.models.model_call import call_model
from accel_engine.run.store.series_names import SeriesNames, is_better_lower
from accel_engine.stored_values import json_number
from accel_engine.trained.evaluation.class_scores import FIGURES, ClassLabels, class_scores
from accel_engine.trained.evaluation.evaluation_notes import block_notes, evaluation_notes
from accel_engine.trained.evaluation.example_states import ExampleStates
from accel_engine.trained.evaluation.resampling import (
    Floats,
    Interval,
    bootstrap_sums,
    p_value,
    percentile_interval,
    share_interval,
    swapped_sums,
)
from accel_engine.trained.split_batches import ProgressReports, batches, fingerprint, number_of_examples
from accel_engine.trained.trained_model import TrainedModel, load
from accel_engine.training.core.assembly import STEP_SERIES
from accel_engine.training.evaluation.baseline import BaselineResult, baseline_of

SAME_METRIC = 1e-3
"""Relative difference up to which a metric of whole batches counts as that of their examples."""

MAX_BYTES = 1 << 28
"""Bytes of the states of all examples at most; metrics with larger states have no interval and are left out."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """What was measured of a model.

    Attributes:
        source: The model and its examples.
        states: How metrics follow from sums.
        values: The values of each example, ``[examples, width]``.
        labels: True and predicted classes of a classifier; ``None`` for other models.
        baseline: What a prediction that has learned nothing reaches on the same examples; ``None`` if unknown.
        metrics: The metrics over all examples, in the order of their names, computed of whole batches as Keras does.
        is_mean: Whether each of them is the same computed of single examples; only then can these be resampled.
        block: Examples in a row that are drawn and swapped together, as they depend on each other.
        resampled: The metrics of resamples, ``[resamples, metrics]``: the same draws for all models; NaN where they
            are not those of whole batches.
    """

    source: TrainedModel
    states: ExampleStates
    values: npt.NDArray[np.float32]
    labels: ClassLabels | None
    baseline: BaselineResult | None
    metrics: Floats
    is_mean: npt.NDArray[np.bool_]
    block: int
    resampled: Floats


def evaluate(request: Mapping[str, Any], on_progress: Callable[[int, int], None] = no_progress) -> dict[str, Any]:
    """Evaluate some models on the same examples.

    Args:
        request: ``models``: for each model the ``directory`` of its run, or the ``plan`` with its file and data;
            ``data``, ``split``, ``checkpoint``: see :func:`of_run`; ``resamples``, ``confidence`` and ``seed``.
        on_progress: Called now and then with the number of examples done, and of all.

    Returns:
        The fields of :class:`accel_engine.requests.evaluate.Evaluation`, as plain values.

    Raises:
        AccelError: A model cannot be evaluated, or the models have other examples.
    """
    models = request["models"]
    measured = [
        _measure(load(model, request, on_progress), request, _of_all(on_progress, index, len(models)))
        for index, model in enumerate(models)
    ]
    _check_same_examples(measured)
    return {
        "split": measured[0].source.split,
        "examples": len(measured[0].values),
        "models": [_described(each, request) for each in measured],
        "differences": [_difference(measured[0], other, request) for other in measured[1:]],
    }


def _of_all(on_progress: Callable[[int, int], None], index: int, models: int) -> Callable[[int, int], None]:
    """The progress of one of several models as that of all."""
    return lambda done, of: on_progress(index * of + done, models * of)


def _measure(source: TrainedModel, request: Mapping[str, Any], on_progress: Callable[[int, int], None]) -> _Measured:
    compiled, examples = source.compiled, source.examples
    if compiled.has_custom_train_step:
        raise ModelError("the model has a custom train_step, so its outputs cannot be interpreted")
    count = number_of_examples(examples)
    names = SeriesNames(*STEP_SERIES)
    limit = max(1, MAX_BYTES // (8 * max(count, request["resamples"])))
    states = ExampleStates(compiled.model, compiled.metrics, names, limit)
    labels = ClassLabels.of(source)
    own_data = source.step > 0 and not request["data"]
    baseline = baseline_of(compiled.task, source.dataset, compiled.outputs, is_training_data=own_data)

    def measure(raw: Batch) -> tuple[tf.Tensor, ...]:
        batch = source.prepare(raw)
        outputs = call_model(compiled.model, batch.inputs, training=False)
        pairs = labels.measure(batch, outputs) if labels else tf.zeros([0, 2], tf.int32)
        mask = tf.ones([tf.shape(flatten(batch)[0])[0]])
        beside = baseline.measure(batch, outputs, mask) if baseline else tf.zeros([0])
        return states.measure(batch, outputs), pairs, states.measure_batch(batch, outputs), beside

    measure_batch = tf.function(measure, autograph=False, reduce_retracing=fixed_batch(compiled.model) is None)
    values, classes, sums, reports = [], [], np.zeros(states.width), ProgressReports(on_progress, count)
    baseline_sums = np.zeros(baseline.width if baseline else 0)
    for rows, raw in batches(examples, source.plan.batch_size):
        found, pairs, whole, beside = measure_batch(map_structure(tf.convert_to_tensor, raw))
        values.append(found.numpy())
        classes.append(pairs.numpy())
        sums += whole.numpy()
        baseline_sums += beside.numpy()
        reports.add(int(rows[-1]) + 1)
    if not values:
        raise DataError(f"the {source.split} data gave no batches")
    labels, every = labels and labels.with_pairs(np.concatenate(classes)), np.concatenate(values)
    metrics, of_examples = states.values(np.stack([sums, every.sum(0, dtype=np.float64)]))
    is_mean = np.isclose(of_examples, metrics, SAME_METRIC, 1e-6, equal_nan=True)
    block = min(_dependent_examples(source), len(every))
    resampled = states.values(bootstrap_sums(every, request["resamples"], request["seed"], block))
    resampled = np.where(is_mean, resampled, np.nan)
    reached = baseline.result(baseline_sums) if baseline else None
    return _Measured(source, states, every, labels, reached, metrics, is_mean, block, resampled)


def _dependent_examples(source: TrainedModel) -> int:
    """How many examples in a row share rows of the data: windows of a time series do."""
    return span_of(source.plan.data_options) if source.dataset.kind == "series" else 1


def _check_same_examples(measured: Sequence[_Measured]) -> None:
    """Raise if the models were not measured on the same examples.

    Raises:
        DataError: They were not.
    """
    first = measured[0]
    for other in measured[1:]:
        if len(first.values) != len(other.values) or fingerprint(first.source.examples) != fingerprint(
            other.source.examples
        ):
            raise DataError(
                f"{first.source.name} and {other.source.name} have other {other.source.split} examples, or scale their "
                "targets differently: give data for both with --data"
            )


def _described(measured: _Measured, request: Mapping[str, Any]) -> dict[str, Any]:
    """A model's metrics and classes, as plain values."""
    metrics, coupled = [], np.array(measured.states.names)[~measured.is_mean].tolist()
    reached = measured.baseline
    for name, value, samples in zip(measured.states.names, measured.metrics, measured.resampled.T, strict=True):
        interval = _interval(measured, name, value, samples, request["confidence"])
        metrics.append(
            {
                "name": name,
                "value": json_number(value),
                "low": json_number(interval.low),
                "high": json_number(interval.high),
            }
        )
    return {
        "name": measured.source.name,
        "step": measured.source.step,
        "notes": [
            *measured.source.notes,
            *evaluation_notes(measured.source, measured.states.left_out, coupled),
            *block_notes(len(measured.values), measured.block),
        ],
        "metrics": metrics,
        "baseline": {name: json_number(value) for name, value in reached.metrics.items()} if reached else {},
        "baseline_name": reached.name if reached else "",
        "classes": _classes(measured, request),
    }


def _interval(measured: _Measured, name: str, value: float, samples: Floats, confidence: float) -> Interval:
    """The interval of a metric; unknown if it is the same for all resamples."""
    count, is_plain = len(measured.values), measured.block == 1 and measured.source.examples.spec.weights is None
    if "accuracy" in name and measured.labels is not None and is_plain:  # a share of independent examples
        return share_interval(round(value * count), count, confidence)
    interval = percentile_interval(samples, confidence)
    return Interval(math.nan, math.nan) if interval.low == interval.high else interval


def _classes(measured: _Measured, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    if measured.labels is None:
        return []
    scores = class_scores(measured.labels, request["confidence"])
    return [{**each, **{figure: list(map(json_number, each[figure])) for figure in FIGURES}} for each in scores]


def _difference(first: _Measured, other: _Measured, request: Mapping[str, Any]) -> dict[str, Any]:
    """What another model's metrics are more than those of the first, as plain values."""
    swapped = _swapped(first, other, request["resamples"], request["seed"])
    metrics = []
    for name in (name for name in first.states.names if name in other.states.names):
        mine, its = first.states.names.index(name), other.states.names.index(name)
        value = float(other.metrics[its] - first.metrics[mine])
        interval = percentile_interval(other.resampled[:, its] - first.resampled[:, mine], request["confidence"])
        is_tested = bool(first.is_mean[mine] and other.is_mean[its])
        chance = p_value(value, swapped[:, mine]) if swapped is not None and is_tested else math.nan
        metrics.append(
            {
                "name": name,
                "value": json_number(value),
                "low": json_number(interval.low),
                "high": json_number(interval.high),
                "p": json_number(chance),
                "better": _is_better(name, value),
            }
        )
    return {"name": other.source.name, "than": first.source.name, "metrics": metrics}


def _swapped(first: _Measured, other: _Measured, resamples: int, seed: int) -> Floats | None:
    """Differences of the metrics with the models swapped at random; ``None`` if their states are not the same ones."""
    if first.states.names != other.states.names or first.states.width != other.states.width:
        return None
    sums = swapped_sums(first.values, other.values, resamples, seed, first.block)
    mine, its = first.states.values(sums[0]), other.states.values(sums[1])
    return its - mine


def _is_better(name: str, difference: float) -> bool | None:
    """Whether a difference is an improvement; ``None`` if there is none, or the metric's name does not tell."""
    lower = is_better_lower(name)
    return None if lower is None or difference == 0 or not math.isfinite(difference) else (difference < 0) == lower
