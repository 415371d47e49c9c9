"""Proves exported models: each is run on the same examples as the trained one, and compared with it."""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from accel_engine.data.structure import Batch, Structure, map_structure
from accel_engine.errors import AccelError, DataError
from accel_engine.inference.keras_runtime import KerasRuntime
from accel_engine.inference.runtime import Runtime
from accel_engine.keras_support.model_call import call_model
from accel_engine.model_export.raw_examples import RawExamples
from accel_engine.model_export.servable_model import Servable, shown_outputs
from accel_engine.run.series_names import SeriesNames
from accel_engine.training.core.assembly import STEP_SERIES
from accel_engine.training.core.metric_states import MetricStates, mean_loss, pack
from accel_engine.training.evaluation.split_batches import ProgressReports
from accel_engine.training.trained_model import TrainedModel
from accel_engine.user_code import reason

LATENCY_SECONDS, LATENCY_RUNS, WARM_UP_RUNS = 0.5, 200, 5
"""A latency is measured for so long, or so often, after some runs that do not count."""


@dataclass(slots=True)
class Figures:
    """What was measured of a model.

    Attributes:
        metrics: The loss and the metrics by name; empty where they cannot be computed from outputs.
        largest: The largest difference of an output from the trained model's, in parts of :func:`scales`.
        mean: The mean over the examples of each one's largest difference.
        latency: The median time of a request with one example, in seconds.
        problem: Why it could not be run; empty if it could.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    largest: float = 0.0
    mean: float = 0.0
    latency: float = math.nan
    problem: str = ""


class _Sums:
    """Sums over the batches of one model, and the differences of each example's outputs."""

    def __init__(self, width: int) -> None:
        self.loss = 0.0
        self.states = np.zeros(width)
        self.apart: list[npt.NDArray[np.float64]] = []

    def add(self, values: npt.NDArray[np.float32], count: int) -> None:
        if len(values):
            self.loss += float(values[0]) * count
            self.states += values[1:]


def prove(
    trained: TrainedModel,
    served: Servable,
    raw: RawExamples,
    candidates: Mapping[str, Runtime],
    on_progress: Callable[[int, int], None],
) -> tuple[Figures, Callable[[str], Figures]]:
    """Run all models on the examples.

    Args:
        trained: The trained model.
        served: Its outputs' form.
        raw: The examples.
        candidates: Exported models by name.
        on_progress: Called now and then with the number of examples done, and of all.

    Returns:
        The figures of the trained model, and a function that measures the latency of a candidate and gives its figures.

    Raises:
        DataError: There are no examples.
        ModelError: The trained model cannot be run.
    """
    measure = _Measure(trained, served)
    sums = {name: _Sums(measure.width) for name in ("", *candidates)}
    problems: dict[str, str] = {}
    magnitudes: list[npt.NDArray[np.float64]] = []
    done, reports = 0, ProgressReports(on_progress, raw.count)
    for inputs, batch in raw.batches():
        expected, values = measure.original(batch)
        count = len(expected[0])
        sums[""].add(values, count)
        magnitudes.append(magnitude(expected))
        for name, runtime in candidates.items():
            if name in problems:
                continue
            try:
                found = runtime.run(inputs)
                outputs = [found[each] for each in measure.outputs]
                sums[name].apart.append(difference(expected, outputs))
                sums[name].add(measure.served(batch, outputs), count)
            except Exception as error:  # noqa: BLE001 (runtimes raise anything; others may work)
                problems[name] = explained(error)
        done += count
        reports.add(done)
    if not done:
        raise DataError(f"the {trained.split} data gave no batches")
    one = raw.first(1)
    whole = KerasRuntime(served.model, 0)  # with the preprocessing, as what is exported
    original = Figures(measure.metrics(sums[""], done), latency=median_seconds(partial(whole.run, one)))
    scale = scales(np.concatenate(magnitudes))

    def figures_of(name: str) -> Figures:
        if name in problems:
            return Figures(problem=problems[name])
        try:
            latency = median_seconds(partial(candidates[name].run, one))
        except Exception as error:  # noqa: BLE001 (it may take no batch of one)
            return Figures(problem=explained(error))
        differences = (np.concatenate(sums[name].apart) / scale).max(axis=1)
        metrics = measure.metrics(sums[name], done)
        return Figures(metrics, float(differences.max()), float(differences.mean()), latency)

    return original, figures_of


def difference(expected: Sequence[npt.NDArray[Any]], found: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    """The largest difference of each example in each output.

    Args:
        expected: An array ``[batch, ...]`` for each output.
        found: The same; what is not a number differs infinitely from what is.

    Returns:
        float64 ``[batch, outputs]``, in the outputs' units.

    Raises:
        ValueError: The shapes differ.
    """
    columns = []
    for want, have in zip(expected, found, strict=True):
        if want.shape != have.shape:
            raise ValueError(f"an output has the shape {have.shape}, not {want.shape}")
        wanted, had = _rows(want), _rows(have)
        with np.errstate(invalid="ignore"):
            apart = np.where(wanted == had, 0.0, np.abs(wanted - had))
        apart[np.isnan(wanted) & np.isnan(had)] = 0.0
        apart[np.isnan(apart)] = np.inf
        columns.append(apart.max(axis=1, initial=0.0))
    return np.stack(columns, axis=1)


def magnitude(outputs: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    """The largest absolute value of each example in each output.

    Args:
        outputs: An array ``[batch, ...]`` for each output; what is not finite does not count.

    Returns:
        float64 ``[batch, outputs]``.
    """
    rows = (np.abs(_rows(each)) for each in outputs)
    return np.stack([np.where(np.isfinite(each), each, 0.0).max(axis=1, initial=0.0) for each in rows], axis=1)


def scales(magnitudes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What differences are divided by: the magnitude of the same example and output, but at least the output's median.

    An example near 0 among large ones is thus not compared more finely than float32 computes, and one that is far
    larger than the others does not hide their differences.

    Args:
        magnitudes: ``[examples, outputs]``, of all examples; see :func:`magnitude`.

    Returns:
        The same shape, at least 1.
    """
    return np.maximum(1.0, np.maximum(magnitudes, np.median(magnitudes, axis=0)))


def _rows(output: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The values of each example, ``[batch, values]``."""
    return np.asarray(output, np.float64).reshape(len(output), -1)


def explained(error: Exception) -> str:
    """Why a model could not be written or run, on one line."""
    return str(error) if isinstance(error, AccelError) else reason(error)


def median_seconds(run: Callable[[], object]) -> float:
    """The median time of a call."""
    for _ in range(WARM_UP_RUNS):
        run()
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < LATENCY_RUNS and (not times or times[-1] < began + LATENCY_SECONDS):
        times.append(time.perf_counter())
        run()
    ends = [*times[1:], time.perf_counter()]
    return statistics.median(end - start for start, end in zip(times, ends, strict=True))


class _Measure:
    """Computes outputs of the trained model, and metrics of any outputs."""

    def __init__(self, trained: TrainedModel, served: Servable) -> None:
        compiled = trained.compiled
        self._trained = trained
        self.outputs = tuple(served.model.output)
        self._states = None
        if not compiled.has_custom_train_step and compiled.model.compiled:
            self._states = MetricStates(compiled.model, compiled.metrics, SeriesNames(*STEP_SERIES))
        self.width = self._states.width if self._states else 0

        def original(raw: Batch) -> tuple[list[tf.Tensor], tf.Tensor]:
            batch = trained.prepare(raw)
            outputs = call_model(compiled.model, batch.inputs, training=False)
            return shown_outputs(outputs, compiled.task), self._measured(batch, outputs)

        def measured(raw: Batch, outputs: list[tf.Tensor]) -> tf.Tensor:
            found = served.restore(dict(zip(self.outputs, outputs, strict=True)))
            return self._measured(trained.prepare(raw), found)

        self._original = tf.function(original, autograph=False, reduce_retracing=True)
        self._served = tf.function(measured, autograph=False, reduce_retracing=True)

    def original(self, batch: Batch) -> tuple[list[npt.NDArray[Any]], npt.NDArray[np.float32]]:
        """The trained model's outputs as they are served, and the batch's loss with the states of its metrics."""
        outputs, values = self._original(map_structure(tf.convert_to_tensor, batch))
        return [output.numpy() for output in outputs], values.numpy()

    def served(self, batch: Batch, outputs: list[npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
        """The loss and the states of metrics of served outputs."""
        values: npt.NDArray[np.float32] = self._served(
            map_structure(tf.convert_to_tensor, batch), list(map(tf.convert_to_tensor, outputs))
        ).numpy()
        return values

    def metrics(self, sums: _Sums, count: int) -> dict[str, float]:
        """The loss and the metrics of all batches."""
        if self._states is None:
            return {}
        results = self._states.results(self._states.unpack(tf.constant(sums.states, tf.float32)))
        return {"loss": sums.loss / count, **{name: float(np.mean(value)) for name, value in results.items()}}

    def _measured(self, batch: Batch, outputs: Structure) -> tf.Tensor:
        if self._states is None:
            return tf.zeros([0])
        loss, states = self._states.measure(batch, outputs, training=False)
        return tf.concat([[mean_loss(loss)], pack(states)], axis=0)
