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

from accel_engine.errors import AccelError, DataError
from accel_engine.inference.keras_runtime import KerasRuntime
from accel_engine.inference.runtime import Runtime
from accel_engine.model_export.output_metrics import MetricSums, OutputMetrics
from accel_engine.model_export.raw_examples import RawExamples
from accel_engine.model_export.servable_model import Servable
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
        of_outputs: The same computed from what is served: of the trained model, they are other ones where
            probabilities cannot tell its logits.
        largest: The largest difference of an output from the trained model's, in parts of :func:`scales`.
        mean: The mean over the examples of each one's largest difference.
        latency: The median time of a request with one example, in seconds.
        problem: Why it could not be run; empty if it could.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    of_outputs: dict[str, float] = field(default_factory=dict)
    largest: float = 0.0
    mean: float = 0.0
    latency: float = math.nan
    problem: str = ""


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
    metrics = OutputMetrics(trained)
    of_model, of_served, names = metrics.of_model(), metrics.of_served(served), tuple(served.model.output)
    sums, served_sums = {name: MetricSums() for name in ("", *candidates)}, MetricSums()
    apart: dict[str, list[npt.NDArray[np.float64]]] = {name: [] for name in candidates}
    problems: dict[str, str] = {}
    magnitudes: list[npt.NDArray[np.float64]] = []
    reports = ProgressReports(on_progress, raw.count)
    for inputs, batch in raw.batches():
        expected, values = of_model(batch)
        count = len(expected[0])
        sums[""].add(values, count)
        served_sums.add(of_served(batch, dict(zip(names, expected, strict=True))), count)
        magnitudes.append(magnitude(expected))
        for name, runtime in candidates.items():
            if name in problems:
                continue
            try:
                found = runtime.run(inputs)
                apart[name].append(difference(expected, [found[each] for each in names]))
                sums[name].add(of_served(batch, found), count)
            except Exception as error:  # noqa: BLE001 (runtimes raise anything; others may work)
                problems[name] = explained(error)
        reports.add(sums[""].count)
    if not sums[""].count:
        raise DataError(f"the {trained.split} data gave no batches")
    of_outputs = metrics.results(served_sums)
    one = raw.first(1)
    whole = KerasRuntime(served.model, 0)  # with the preprocessing, as what is exported
    original = Figures(metrics.results(sums[""]), of_outputs, latency=median_seconds(partial(whole.run, one)))
    scale = scales(np.concatenate(magnitudes))

    def figures_of(name: str) -> Figures:
        if name in problems:
            return Figures(problem=problems[name])
        try:
            latency = median_seconds(partial(candidates[name].run, one))
        except Exception as error:  # noqa: BLE001 (it may take no batch of one)
            return Figures(problem=explained(error))
        differences = (np.concatenate(apart[name]) / scale).max(axis=1)
        found = metrics.results(sums[name])
        return Figures(found, found, float(differences.max()), float(differences.mean()), latency)

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
