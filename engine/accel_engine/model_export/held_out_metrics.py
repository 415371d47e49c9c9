"""Computes the metrics of models whose inference is measured, on examples that training did not see."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from accel_engine.errors import DataError, ModelError
from accel_engine.formats import open_model
from accel_engine.inference.candidate import HeldOutMetrics
from accel_engine.inference.runtime import Runtime
from accel_engine.json_values import json_number
from accel_engine.model_export.artefacts import Artefacts
from accel_engine.model_export.output_metrics import MetricSums, OutputMetrics
from accel_engine.model_export.proof import failure_line
from accel_engine.model_export.raw_examples import RawExamples
from accel_engine.model_export.servable_model import Servable
from accel_engine.requests.bench_models import BenchedModel, BenchOptions
from accel_engine.requests.held_out_metrics import HeldOutRequest, MetricsOfModels
from accel_engine.requests.protocol.request import Send, reports, tells, unheard
from accel_engine.run.store.series_names import VALIDATION_PREFIX, choose_monitor
from accel_engine.trained.bench.trained_runtime import computing_in, device_names, precisions
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.trained.run_data import SPLITS
from accel_engine.trained.split_batches import ProgressReports, batches, target_fingerprint


def held_out_metrics(request: HeldOutRequest, send: Send = unheard) -> MetricsOfModels:
    """Compute the metrics of some models, each run's data being loaded once.

    Args:
        request: The models, and how they will be measured.
        send: Takes how far it is.
    """
    found: list[dict[str, HeldOutMetrics]] = [{} for _ in request.models]
    notes: list[str] = []
    tells(send)("computing metrics")
    for members in _by_data(request.models):
        models = [request.models[index] for index in members]
        try:
            group = _Group(_load(models, request.options, reports(send)), request.options, reports(send))
        except Exception as error:  # noqa: BLE001 (code of the user's own; the speed can be measured all the same)
            notes += [f"no metrics of {model.name}: {failure_line(error)}" for model in models]
            continue
        for index, model in zip(members, models, strict=True):
            try:
                for precision, metrics in group.measured(model):
                    # What was measured before an error counts.
                    found[index][precision] = replace(metrics, is_foreign=model.is_foreign)
            except Exception as error:  # noqa: BLE001 (runtimes raise anything)
                notes.append(f"no metrics of {model.name}: {failure_line(error)}")
    return MetricsOfModels(tuple(found), tuple(notes))


def _by_data(models: Sequence[BenchedModel]) -> Iterable[list[int]]:
    """The indices of the models that have their data in common."""
    groups: dict[object, list[int]] = {}
    for index, model in enumerate(models):
        if model.reference is not None:
            groups.setdefault(model.reference.directory or index, []).append(index)
    return groups.values()


class _Group:
    """A trained model with its data, and what is measured on it."""

    def __init__(self, trained: TrainedModel, options: BenchOptions, on_progress: Callable[[int, int], None]) -> None:
        self._trained = trained
        self._options = options
        self._on_progress = on_progress
        self._metrics = OutputMetrics(trained)
        if not self._metrics.are_known:
            raise ModelError("the model has a custom train_step, so its outputs cannot be interpreted")
        self._fingerprint = target_fingerprint(trained.examples)
        self._served: Servable | None = None

    def measured(self, model: BenchedModel) -> Iterator[tuple[str, HeldOutMetrics]]:
        """The metrics of the model, or of a file, by precision."""
        if model.file:
            yield "", self._of_file(open_model(model.file))
            return
        keras_model = self._trained.model
        own = keras_model.dtype_policy.name
        wanted = self._options.precisions or [
            each for device in device_names(self._options.devices) for each in precisions(device, own)
        ]
        for precision in dict.fromkeys(wanted):
            with computing_in(keras_model, precision):
                values = self._of_model()
            yield precision, values

    def _of_model(self) -> HeldOutMetrics:
        run, sums = self._metrics.of_model(), MetricSums()
        reports = ProgressReports(self._on_progress, 0)
        for _, batch in batches(self._trained.examples, self._trained.plan.batch_size):
            outputs, values = run(batch)
            sums.add(values, len(outputs[0]))
            reports.add(sums.count)
        return self._described(sums)

    def _of_file(self, runtime: Runtime) -> HeldOutMetrics:
        trained = self._trained
        served = self._served = self._served or Artefacts(trained, trained.name).complete
        if missing := [name for name in served.model.output if name not in runtime.outputs]:
            raise ModelError(f"it has no output {missing[0]}, as exports of run {trained.name} have")
        # Other data than the run's own takes the place of its validation examples.
        split = trained.split if trained.split in SPLITS else "validation"
        raw = RawExamples(trained.dataset, split, trained.examples, trained.plan.batch_size)
        sums = MetricSums()
        measure, reports = self._metrics.of_served(served), ProgressReports(self._on_progress, raw.count)
        for inputs, batch in raw.batches():
            outputs = runtime.run(inputs)
            sums.add(measure(batch, outputs), len(next(iter(outputs.values()))))
            reports.add(sums.count)
        return self._described(sums)

    def _described(self, sums: MetricSums) -> HeldOutMetrics:
        trained = self._trained
        if not sums.count:
            raise DataError(f"the {trained.split} data gave no batches")
        values = self._metrics.results(sums)
        main = choose_monitor(trained.plan.monitor, values, values, trained.task.name)
        main = main.removeprefix(VALIDATION_PREFIX)
        order = dict.fromkeys((*([main] if main in values else ()), "loss", *values))
        return HeldOutMetrics(
            values={name: json_number(values[name]) for name in order},
            split=trained.split,
            examples=sums.count,
            source=trained.name,
            fingerprint=self._fingerprint,
        )


def _load(
    models: Sequence[BenchedModel], options: BenchOptions, on_progress: Callable[[int, int], None]
) -> TrainedModel:
    """The trained model that some models have their data from: a run's, with raw rows for files, or a file's."""
    reference = models[0].reference
    assert reference is not None  # noqa: S101 (models without data are in no group)
    measured = [model for model in models if not model.file]
    has_files = len(measured) < len(models)
    return open_trained(
        reference.model,
        data=options.data,
        split=options.split,
        # A chosen checkpoint belongs to a measured run: others may not have it.
        checkpoint=options.checkpoint if measured else "auto",
        keeps_raw=has_files,
        progress=on_progress,
    )
