"""Proves exported models: each is run on the same examples as the trained one, and compared with it.

Each value of its outputs is judged by its own scale, and its loss and metrics.
"""

import math
import statistics
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_engine.data.data_options import OF_CLASSES
from accel_engine.data.structure import Batch, flatten
from accel_engine.errors import AccelError, DataError
from accel_engine.inference.keras_runtime import KerasRuntime
from accel_engine.inference.output_differences import Differences, Divisor, Floats, OutputScale
from accel_engine.inference.runtime import Runtime
from accel_engine.keras_support.losses import takes_scores
from accel_engine.model_export.output_metrics import MetricSums, OutputMetrics, Values
from accel_engine.model_export.raw_examples import RawExamples
from accel_engine.model_export.servable_model import Servable
from accel_engine.models.exported_model import PROBABILITIES
from accel_engine.plan.monitor import is_better_lower
from accel_engine.run.store.series_names import is_loss
from accel_engine.service_client.transport import ServiceError
from accel_engine.trained.bench.trained_runtime import computing_in_float32
from accel_engine.trained.open_trained import TrainedModel
from accel_engine.trained.split_batches import ProgressReports
from accel_engine.training.core.task import BY_RANK, SEVERAL_OUTPUTS
from accel_engine.training.evaluation.reports.choice import loss_of_output, output_task, target_index
from accel_engine.user_code import reason
from accel_engine.words import numbers

FLOAT32, CONSTANT = "in float32", "constant"
"""What is run besides exported models: the trained model in float32, and the same outputs for all examples."""

SAMPLE_BYTES = 1 << 26
"""Bytes of the outputs from which scales are taken, more or less."""

_Run = Callable[[Batch], tuple[list[npt.NDArray[Any]], Values]]

LATENCY_SECONDS, LATENCY_RUNS, WARM_UP_RUNS = 0.5, 200, 5
"""Seconds, or runs, after which the measurement of a latency ends; and the runs before it, which do not count."""


@dataclass(slots=True)
class Figures:
    """The measurements of a model."""

    metrics: dict[str, float] = field(default_factory=dict)
    """The loss and the metrics by name; empty where they cannot be computed from outputs."""
    of_outputs: dict[str, float] = field(default_factory=dict)
    """The same computed from what is served. The trained model's are others where probabilities cannot tell its
    logits."""
    largest: float = 0.0
    """The largest difference of a value of an output from the trained model's, in parts of its scale: see
    :class:`accel_engine.inference.output_differences.OutputScale`."""
    mean: float = 0.0
    """The largest of the mean differences of the values, over the examples."""
    differs: tuple[str, str] = ("", "")
    """The names of the values with the largest difference, and with the largest mean."""
    worse: str = ""
    """The loss or metric that is far worse than the trained model's; empty for none."""
    latency: float = math.nan
    """The median time of a request with one example, in seconds."""
    problem: str = ""
    """Why it could not be run; empty if it could."""


class Proof:
    """Runs the trained model and its exports on the same examples.

    Args:
        trained: The trained model.
        served: Its outputs' form.
        raw: The examples.
        tolerances: How far each exported model may be from the trained one, by its name.
        in_float32: The names of the exported models that compute in float32 although the trained one does not: they
            are compared with the trained model in float32.

    Attributes:
        scales: The scale of each output, by its name, once they were run.
    """

    def __init__(
        self,
        trained: TrainedModel,
        served: Servable,
        raw: RawExamples,
        tolerances: Mapping[str, float],
        in_float32: Container[str] = (),
    ) -> None:
        self._trained, self._served, self._raw = trained, served, raw
        self._tolerances, self._in_float32 = tolerances, in_float32
        self._metrics = OutputMetrics(trained)
        self._names = tuple(served.model.output)
        self.scales = dict[str, OutputScale]()
        own, of_float32 = self._metrics.of_model(), self._metrics.of_model()
        self._models: dict[str, _Run] = {"": own, FLOAT32: lambda batch: self._computed_in_float32(of_float32, batch)}

    def _computed_in_float32(self, run: _Run, batch: Batch) -> tuple[list[npt.NDArray[Any]], Values]:
        with computing_in_float32(self._trained.model):
            return run(batch)

    def run(self, candidates: Mapping[str, Runtime], on_progress: Callable[[int, int], None]) -> None:
        """Run all models on the examples.

        Args:
            candidates: Exported models by name.
            on_progress: Called now and then with the number of examples done, and of all.

        Raises:
            DataError: There are no examples.
            ModelError: The trained model cannot be run.
            ServiceError: A service does not answer, or refuses.
        """
        self._candidates = candidates
        references = ("", *((FLOAT32,) if any(name in self._in_float32 for name in candidates) else ()))
        of_served = self._metrics.of_served(self._served)
        scales, constant = self._sample()
        self.scales = dict(zip(self._names, scales, strict=True))
        self._sums = {name: MetricSums() for name in (*references, *candidates)}
        self._served_sums = {name: MetricSums() for name in (*references, CONSTANT)}
        self._apart = {name: Differences(scales) for name in (*references, *candidates)}
        self._problems: dict[str, str] = {}
        reports = ProgressReports(on_progress, self._raw.count)
        for inputs, batch in self._raw.batches():
            expected: dict[str, list[npt.NDArray[Any]]] = {}
            for reference in references:
                expected[reference], values = self._models[reference](batch)
                count = len(expected[reference][0])
                self._sums[reference].add(values, count)
                self._served_sums[reference].add(of_served(batch, self._named(expected[reference])), count)
                self._apart[reference].add(expected[""], expected[reference])
            if constant:
                same = [np.broadcast_to(mean, each.shape) for mean, each in zip(constant, expected[""], strict=True)]
                self._served_sums[CONSTANT].add(of_served(batch, self._named(same)), count)
            for name, runtime in candidates.items():
                if name in self._problems:
                    continue
                try:
                    found = runtime.run(inputs)
                    self._apart[name].add(expected[self._reference(name)], [found[each] for each in self._names])
                    self._sums[name].add(of_served(batch, found), count)
                except ServiceError:  # the service may be right
                    raise
                except Exception as error:  # noqa: BLE001 (runtimes raise anything; others may work)
                    self._problems[name] = failure_line(error)
            reports.add(self._sums[""].count)
        if not self._sums[""].count:
            raise DataError(f"the {self._trained.split} data gave no batches")

    def _reference(self, name: str) -> str:
        """The model that a candidate is compared with."""
        return FLOAT32 if name in self._in_float32 else ""

    def _named(self, outputs: Sequence[npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        return dict(zip(self._names, outputs, strict=True))

    def _sample(self) -> tuple[list[OutputScale], list[Floats]]:
        """The scales of the outputs, and their means if examples are all of one shape, from some of the examples."""
        found: list[list[npt.NDArray[Any]]] = []
        for batch in self._raw.sampled():
            found.append(self._models[""](batch)[0])
            if sum(each.nbytes for outputs in found for each in outputs) > SAMPLE_BYTES:
                break
        if not found:
            raise DataError(f"the {self._trained.split} data gave no batches")
        trained = self._trained
        scales, means = [], []
        for index, (name, parts) in enumerate(zip(self._names, zip(*found, strict=True), strict=True)):
            divisor = _divisor_of(name, index, self._served.model.output[name], trained)
            is_whole = len({part.shape[1:] for part in parts}) == 1
            outputs = np.concatenate(parts) if is_whole else parts[0]
            scales.append(OutputScale.of(outputs, divisor))
            means += [outputs.mean(axis=0).astype(outputs.dtype)] if is_whole else []
        return scales, means if len(means) == len(scales) else []

    def original(self) -> Figures:
        """The figures of the trained model."""
        whole = KerasRuntime(self._served.model, 0)  # with the preprocessing, as what is exported
        of_outputs = self._metrics.results(self._served_sums[""])
        latency = median_seconds(partial(whole.run, self._raw.first(1)))
        return Figures(self._metrics.results(self._sums[""]), of_outputs, latency=latency)

    def in_float32(self) -> Figures | None:
        """The figures of the trained model in float32; ``None`` if nothing was written in it."""
        return self._figures(FLOAT32) if FLOAT32 in self._sums else None

    def exported(self, name: str) -> Figures:
        """The figures of an exported model, whose latency is measured now.

        Raises:
            ServiceError: A service does not answer, or refuses.
        """
        if name in self._problems:
            return Figures(problem=self._problems[name])
        try:
            latency = median_seconds(partial(self._candidates[name].run, self._raw.first(1)))
        except ServiceError:
            raise
        except Exception as error:  # noqa: BLE001 (it may take no batch of one)
            return Figures(problem=failure_line(error))
        figures = self._figures(name)
        figures.latency = latency
        expected = self._metrics.results(self._served_sums[self._reference(name)])
        constant, count = self._metrics.results(self._served_sums[CONSTANT]), self._sums[name].count
        figures.worse = worsened(figures.metrics, expected, constant, self._tolerances[name], count)
        return figures

    def _figures(self, name: str) -> Figures:
        (largest, *first), (mean, *second) = (self._apart[name].worst(by_mean=by_mean) for by_mean in (False, True))
        return Figures(
            self._metrics.results(self._sums[name]),
            largest=largest,
            mean=mean,
            differs=(self._value_name(*first), self._value_name(*second)),
        )

    def _value_name(self, output: int, place: int) -> str:
        """The name of a value of an output; empty if there is only one that has a scale."""
        name, columns = self._names[output], self._trained.dataset.target_names
        sides = self._served.model.output[name].shape[1:]
        if len(self._apart[""].sums[output]) == 1:
            return name if len(self._names) > 1 else ""
        if len(self._names) == 1 and sides[-1] == len(columns):
            return columns[place % len(columns)]
        return f"{name}[{', '.join(map(str, np.unravel_index(place, sides)))}]"


def failure_line(error: Exception) -> str:
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


LEAST_WORSENING = 0.01
"""How much worse a loss or metric may be, at least: see :func:`worsened`."""


def _divisor_of(name: str, index: int, output: Any, trained: TrainedModel) -> Divisor:
    """How an output is compared.

    Args:
        name: Its name in the served model.
        index: Its place.
        output: Its spec, with the batch.
        trained: The trained model.
    """
    task, targets = trained.task.name, trained.dataset.spec.targets
    if name == PROBABILITIES:
        return Divisor.NONE
    if task == SEVERAL_OUTPUTS:
        loss, place = loss_of_output(trained.model.loss, name, index), target_index(targets, name, index)
        target = flatten(targets)[place] if place is not None else None
        task = output_task(loss, tuple(output.shape), target, trained.dataset.kind)
        if task in (*OF_CLASSES, *BY_RANK.values()):
            return Divisor.COLUMNS if takes_scores(loss) else Divisor.NONE
    return Divisor.RANGE if task == "reconstruction" or None in output.shape[1:] else Divisor.COLUMNS


def worsened(
    found: Mapping[str, float],
    expected: Mapping[str, float],
    constant: Mapping[str, float],
    tolerance: float,
    examples: int,
) -> str:
    """The loss or metric that is so much worse that the outputs are ruined; empty for none.

    A change of a loss or an error counts in parts of its value, or of its difference from constant outputs,
    whichever is larger; of other metrics, such as accuracies, in parts of their value, but at least of 1.

    Args:
        found: The loss and the metrics.
        expected: The trained model's loss and metrics.
        constant: Loss and metrics of constant outputs, the mean of the trained model's; empty if unknown.
        tolerance: How large the change may be; but :data:`LEAST_WORSENING` and one example are always allowed.
        examples: Their number.
    """
    limit = max(tolerance, LEAST_WORSENING, 1.5 / max(examples, 1))
    for name, before in expected.items():
        after, lower = found.get(name, math.nan), is_loss(name) or is_better_lower(name)
        if lower is None or not math.isfinite(before):
            continue
        gained = constant.get(name, before) - before
        scale = max(abs(before), (abs(gained) if math.isfinite(gained) else 0.0) if lower else 1.0)
        worse = after - before if lower else before - after
        if not worse <= limit * scale:
            return f"the {name} is {numbers.metric(after)}, not {numbers.metric(before)}"
    return ""
