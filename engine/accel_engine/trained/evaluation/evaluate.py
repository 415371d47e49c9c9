"""Evaluates trained models on the same examples: metrics with confidence intervals, by class, and their differences."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.dataset import Split
from accel_engine.data.series.series_parts import span_of
from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.errors import DataError, ModelError
from accel_engine.json_values import json_number
from accel_engine.keras_support.model_structure import fixed_batch, has_custom_train_step
from accel_engine.models.model_call import call_model
from accel_engine.plan.monitor import is_better_lower
from accel_engine.requests.evaluate import (
    Difference,
    EvaluatedModel,
    Evaluation,
    EvaluationOptions,
    EvaluationRequest,
    Measurement,
    MetricDifference,
)
from accel_engine.requests.protocol.request import Send, reports, tells, unheard
from accel_engine.run.store.series_names import SeriesNames
from accel_engine.trained.evaluation.example_states import ClassLabels, ExampleStates, class_scores
from accel_engine.trained.evaluation.file_outputs import Rows, first_windows, outputs_of_files
from accel_engine.trained.evaluation.resampling import (
    ConfidenceInterval,
    Floats,
    bootstrap_sums,
    p_value,
    percentile_interval,
    share_interval,
    swapped_sums,
)
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.trained.split_batches import ProgressReports, batches, number_of_examples, target_fingerprint
from accel_engine.training.core.assembly import STEP_SERIES
from accel_engine.training.core.metric_building import check_metrics
from accel_engine.training.core.recipe.metrics import second_class_note
from accel_engine.training.evaluation.baseline import BaselineResult, baseline_of

SAME_METRIC = 1e-3
"""Relative difference up to which a metric of whole batches counts as the metric of their examples."""

MAX_BYTES = 1 << 28
"""Bytes of the states of all examples at most; metrics with larger states have no interval and are left out."""


_FEWEST_BLOCKS = 20
"""Fewest blocks of examples for intervals without a note: with fewer, resamples differ too little."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """The measurements of a model.

    Attributes:
        source: The model and its examples.
        states: How metrics follow from sums.
        values: The values of each example, ``[examples, width]``.
        labels: True and predicted classes of a classifier; ``None`` for other models.
        baseline: What a prediction that has learned nothing reaches on the same examples; ``None`` if unknown.
        metrics: The metrics over all examples, in the order of their names, computed of whole batches as Keras does.
        is_mean: Whether each of them is the same computed of single examples; only then can these be resampled.
        block: Examples in a row that are drawn and swapped together, as they depend on each other.
        first: The row of the first window of each file, where files are the examples; ``None`` if all rows are.
        resampled: The metrics of resamples, ``[resamples, metrics]``: the same draws for all models; NaN where they
            differ from the metrics of whole batches.
    """

    source: TrainedModel
    states: ExampleStates
    values: npt.NDArray[np.float32]
    labels: ClassLabels | None
    baseline: BaselineResult | None
    metrics: Floats
    is_mean: npt.NDArray[np.bool_]
    block: int
    first: Rows | None
    resampled: Floats


def evaluate(request: EvaluationRequest, send: Send = unheard) -> Evaluation:
    """Evaluate some models on the same examples.

    Args:
        request: The models, and how.
        send: Takes how far it is.

    Raises:
        AccelError: A model cannot be evaluated, or the models have other examples.
    """
    models, options, on_progress = request.models, request.options, reports(send)
    doing = tells(send)
    measured = [
        _measure(
            open_trained(
                model.model,
                data=options.data,
                split=options.split,
                checkpoint=options.checkpoint,
                progress=on_progress,
                doing=doing,
            ),
            options,
            _of_all(on_progress, index, len(models)),
            doing,
        )
        for index, model in enumerate(models)
    ]
    _check_same_examples(measured)
    return Evaluation(
        measured[0].source.split,
        len(measured[0].values),
        tuple(_described(each, options) for each in measured),
        tuple(_difference(measured[0], other, options) for other in measured[1:]),
    )


def _of_all(on_progress: Callable[[int, int], None], index: int, models: int) -> Callable[[int, int], None]:
    """The progress of one of several models as a part of all."""
    return lambda done, of: on_progress(index * of + done, models * of)


def _measure(
    source: TrainedModel,
    options: EvaluationOptions,
    on_progress: Callable[[int, int], None],
    doing: Callable[[str], object],
) -> _Measured:
    model, examples = source.model, source.examples
    if has_custom_train_step(model):
        raise ModelError("the model has a custom train_step, so its outputs cannot be interpreted")
    windows = number_of_examples(examples)
    first = first_windows(examples, source.task)
    count = windows if first is None else len(first)
    names = SeriesNames(*STEP_SERIES)
    limit = max(1, MAX_BYTES // (8 * max(count, options.resamples)))
    states = ExampleStates(model, source.metrics, names, limit)
    labels = ClassLabels.of(source)
    own_data = source.step > 0 and not options.data
    baseline = baseline_of(source.task, source.dataset, source.outputs, is_training_data=own_data)

    def measure(raw: Batch, of_files: tf.Tensor | None) -> tuple[tf.Tensor, ...]:
        batch = source.prepare(raw)
        outputs = call_model(model, batch.inputs, training=False)
        if of_files is not None:  # the call is for losses that the model's layers add
            outputs = map_structure(lambda each: tf.cast(of_files, each.dtype), outputs)
        pairs = labels.measure(batch, outputs) if labels else tf.zeros([0, 2], tf.int32)
        mask = tf.ones([tf.shape(flatten(batch)[0])[0]])
        beside = baseline.measure(batch, outputs, mask) if baseline else tf.zeros([0])
        return states.measure(batch, outputs), pairs, states.measure_batch(batch, outputs), beside

    takes_any = fixed_batch(model) is None
    traced = tf.function(measure, autograph=False, reduce_retracing=takes_any)  # sequences may differ in length, too
    doing("evaluating")
    values: list[npt.NDArray[np.float32]] = []
    classes, sums, reports = [], np.zeros(states.width), ProgressReports(on_progress, windows)
    baseline_sums = np.zeros(baseline.width if baseline else 0)
    of_files = None if first is None else outputs_of_files(source, first, reports.add)
    for rows, raw in batches(examples, source.plan.batch_size, first):
        joined = None if of_files is None else of_files[len(values) * source.plan.batch_size :][: len(rows)]
        tensors = map_structure(tf.convert_to_tensor, (raw, joined))
        # One graph for batches of any size, as the last one is smaller.
        run = traced.get_concrete_function(*map_structure(_of_any_size, tensors)) if takes_any else traced
        found, pairs, whole, beside = run(*tensors)
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
    doing("drawing resamples")
    block = min(_dependent_examples(source), len(every))
    resampled = states.values(bootstrap_sums(every, options.resamples, options.seed, block))
    resampled = np.where(is_mean, resampled, np.nan)
    reached = baseline.result(baseline_sums) if baseline else None
    return _Measured(source, states, every, labels, reached, metrics, is_mean, block, first, resampled)


def _of_any_size(batch: tf.Tensor) -> tf.TensorSpec:
    return tf.TensorSpec((None, *batch.shape[1:]), batch.dtype)


def _dependent_examples(source: TrainedModel) -> int:
    """How many examples in a row share rows of the data: windows of a time series do."""
    return span_of(source.plan.data_options) if source.dataset.kind == "series" else 1


def _check_same_examples(measured: Sequence[_Measured]) -> None:
    """Check that the models were measured on the same examples.

    Raises:
        DataError: The models have other examples, or other scales of the targets.
    """
    first = measured[0]
    for other in measured[1:]:
        pair = (first, other)
        has_inputs = _have_comparable_inputs(*(each.source for each in pair))
        found = [target_fingerprint(each.source.examples, each.first, has_inputs=has_inputs) for each in pair]
        if len(first.values) != len(other.values) or found[0] != found[1]:
            raise DataError(
                f"{first.source.name} and {other.source.name} have other {other.source.split} examples, or scale their "
                "targets differently: give data for both with --data"
            )


def _have_comparable_inputs(first: TrainedModel, other: TrainedModel) -> bool:
    """Whether two models have the same inputs if they have the same examples.

    They have not where inputs have other sizes or rates, or follow from what was learned from training examples.
    Without targets, the inputs are what outputs are compared with.
    """
    if first.examples.spec.targets is None:
        return True
    forms = [
        (each.examples.spec.inputs, each.dataset.sample_rate, each.dataset.vocabulary, each.dataset.preprocess)
        for each in (first, other)
    ]
    return forms[0] == forms[1] and first.dataset.preprocess is None


def _described(measured: _Measured, options: EvaluationOptions) -> EvaluatedModel:
    """A model's metrics and classes."""
    metrics, coupled = {}, np.array(measured.states.names)[~measured.is_mean].tolist()
    reached = measured.baseline
    for name, value, samples in zip(measured.states.names, measured.metrics, measured.resampled.T, strict=True):
        metrics[name] = Measurement.of(value, *_interval(measured, name, value, samples, options.confidence))
    notes = (
        *measured.source.notes,
        *_evaluation_notes(measured.source, measured.states.left_out, coupled),
        *_block_notes(len(measured.values), measured.block),
        *_window_notes(measured),
    )
    return EvaluatedModel(
        measured.source.name,
        measured.source.step,
        metrics,
        () if measured.labels is None else class_scores(measured.labels, options.confidence),
        tuple(dict.fromkeys(notes)),
        {name: json_number(value) for name, value in reached.metrics.items()} if reached else {},
        reached.name if reached else "",
    )


def _interval(measured: _Measured, name: str, value: float, samples: Floats, confidence: float) -> ConfidenceInterval:
    """The interval of a metric; unknown if it is the same for all resamples."""
    count, is_plain = len(measured.values), measured.block == 1 and measured.source.examples.spec.weights is None
    if "accuracy" in name and measured.labels is not None and is_plain:  # a share of independent examples
        return share_interval(round(value * count), count, confidence)
    interval = percentile_interval(samples, confidence)
    return ConfidenceInterval(math.nan, math.nan) if interval.low == interval.high else interval


def _difference(first: _Measured, other: _Measured, options: EvaluationOptions) -> Difference:
    """By how much another model's metrics exceed the first's."""
    swapped = _swapped(first, other, options.resamples, options.seed)
    metrics = {}
    for name in (name for name in first.states.names if name in other.states.names):
        mine, its = first.states.names.index(name), other.states.names.index(name)
        value = float(other.metrics[its] - first.metrics[mine])
        interval = percentile_interval(other.resampled[:, its] - first.resampled[:, mine], options.confidence)
        is_tested = bool(first.is_mean[mine] and other.is_mean[its])
        chance = p_value(value, swapped[:, mine]) if swapped is not None and is_tested else math.nan
        is_better = _is_better(name, value)
        metrics[name] = MetricDifference(Measurement.of(value, *interval), json_number(chance), is_better)
    return Difference(other.source.name, first.source.name, metrics)


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


def _evaluation_notes(source: TrainedModel, left_out: Sequence[str], coupled: Sequence[str]) -> Iterator[str]:
    """Warnings for the user.

    Args:
        source: The model and its examples.
        left_out: Names of the metrics that are left out.
        coupled: Names of the metrics that depend on which examples share a batch.
    """
    if left_out:
        yield f"left out, as their states of all examples would not fit in memory: {', '.join(left_out)}"
    yield from check_metrics(source.model, source.task, source.outputs, source.dataset)
    yield from second_class_note(source.plan, source.task, source.outputs, source.dataset)
    if coupled:
        size = f" of {source.plan.batch_size:,} examples" if isinstance(source.examples, Split) else ""
        yield (
            f"{', '.join(coupled)}: computed of batches{size} as Keras does, and not the same of single examples, so "
            "without an interval and a test"
        )
    if not isinstance(source.examples, Split):
        yield "the examples of a stream are counted only: whether other models have the same ones is not known"


def _block_notes(examples: int, block: int) -> Iterator[str]:
    """How examples that depend on each other were resampled.

    Args:
        examples: Their number.
        block: Examples in a row that are drawn together.
    """
    if block == 1:
        return
    yield f"windows of a series overlap: intervals and P are from blocks of {block:,} windows in a row"
    if examples < _FEWEST_BLOCKS * block:
        yield f"{examples:,} windows are few such blocks: intervals and P are too small"


def _window_notes(measured: _Measured) -> Iterator[str]:
    """How files that are divided were counted."""
    if measured.first is not None:
        windows = number_of_examples(measured.source.examples)
        yield (
            f"{windows:,} windows of {len(measured.first):,} sounds: each sound counts once, by the mean of the "
            "probabilities of its windows, as predict gives it"
        )
