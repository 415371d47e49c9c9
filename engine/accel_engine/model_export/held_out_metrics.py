"""Computes the metrics of models whose inference is measured, on examples that training did not see."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from accel_engine.data.data_options import no_progress
from accel_engine.errors import DataError, ModelError
from accel_engine.inference.open_model import open_model
from accel_engine.inference.runtime import Runtime
from accel_engine.model_export.artefacts import Artefacts
from accel_engine.model_export.output_metrics import MetricSums, OutputMetrics
from accel_engine.model_export.proof import explained
from accel_engine.model_export.raw_examples import RawExamples
from accel_engine.model_export.servable_model import Servable
from accel_engine.run.store.series_names import VALIDATION_PREFIX, choose_monitor
from accel_engine.stored_values import json_number
from accel_engine.trained.bench.device_choice import devices, precisions
from accel_engine.trained.bench.trained_runtime import computing_in
from accel_engine.trained.split_batches import ProgressReports, batches, fingerprint
from accel_engine.trained.trained_model import SPLITS, TrainedModel, load, of_run

MetricsByPrecision = dict[str, dict[str, Any]]
"""The fields of :class:`accel_engine.inference.held_out_metrics.HeldOutMetrics` by the precision of the layers; by an
empty text, those of a file."""


def held_out_metrics(
    request: Mapping[str, Any], on_progress: Callable[[int, int], None] = no_progress
) -> dict[str, Any]:
    """Compute the metrics of some models, each run's data being loaded once.

    Args:
        request: As of :func:`accel_engine.trained.bench.bench.bench`; each of the ``models`` that is a
            ``file`` has the ``directory`` of a run too, whose data is used, and ``is_foreign`` if it does not tell
            that it is from this run; or nothing, and then it has no metrics.
        on_progress: Called now and then with the number of examples done, and of all.

    Returns:
        ``models``: :data:`MetricsByPrecision` for each; ``notes``: why some have none.
    """
    found: list[MetricsByPrecision] = [{} for _ in request["models"]]
    notes: list[str] = []
    for members in _by_data(request["models"]):
        models = [request["models"][index] for index in members]
        try:
            group = _Group(_load(models, request, on_progress), request, on_progress)
        except Exception as error:  # noqa: BLE001 (code of the user's own; the speed can be measured all the same)
            notes += [f"no metrics of {_name(model)}: {explained(error)}" for model in models]
            continue
        for index, model in zip(members, models, strict=True):
            try:
                for precision, values in group.measured(model):
                    # What was measured before an error counts.
                    found[index][precision] = {**values, "is_foreign": model.get("is_foreign", False)}
            except Exception as error:  # noqa: BLE001 (runtimes raise anything)
                notes.append(f"no metrics of {_name(model)}: {explained(error)}")
    return {"models": found, "notes": notes}


def _by_data(models: list[dict[str, Any]]) -> Iterable[list[int]]:
    """The indices of the models that have their data in common."""
    groups: dict[str, list[int]] = {}
    for index, model in enumerate(models):
        if "plan" in model:
            groups[f"plan {index}"] = [index]
        elif "directory" in model:
            groups.setdefault(model["directory"], []).append(index)
    return groups.values()


def _name(model: Mapping[str, Any]) -> str:
    return model.get("name") or Path(model.get("file") or model.get("directory") or model["plan"]["model"]).name


class _Group:
    """A trained model with its data, and what is measured on it."""

    def __init__(
        self, trained: TrainedModel, request: Mapping[str, Any], on_progress: Callable[[int, int], None]
    ) -> None:
        self._trained = trained
        self._request = request
        self._on_progress = on_progress
        self._metrics = OutputMetrics(trained)
        if not self._metrics.are_known:
            raise ModelError("the model has a custom train_step, so its outputs cannot be interpreted")
        self._fingerprint = fingerprint(trained.examples)
        self._served: Servable | None = None

    def measured(self, model: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The metrics of the model, or of a file, by precision."""
        if "file" in model:
            yield "", self._of_file(open_model(Path(model["file"])))
            return
        keras_model = self._trained.compiled.model
        own = keras_model.dtype_policy.name
        wanted = self._request["precisions"] or [
            each for device in devices(self._request["devices"]) for each in precisions(device, own)
        ]
        for precision in dict.fromkeys(wanted):
            with computing_in(keras_model, precision):
                values = self._of_model()
            yield precision, values

    def _of_model(self) -> dict[str, Any]:
        run, sums = self._metrics.of_model(), MetricSums()
        reports = ProgressReports(self._on_progress, 0)
        for _, batch in batches(self._trained.examples, self._trained.plan.batch_size):
            outputs, values = run(batch)
            sums.add(values, len(outputs[0]))
            reports.add(sums.count)
        return self._described(sums)

    def _of_file(self, runtime: Runtime) -> dict[str, Any]:
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

    def _described(self, sums: MetricSums) -> dict[str, Any]:
        trained = self._trained
        if not sums.count:
            raise DataError(f"the {trained.split} data gave no batches")
        values = self._metrics.results(sums)
        main = choose_monitor(trained.plan.monitor, values, values, trained.compiled.task.name)
        main = main.removeprefix(VALIDATION_PREFIX)
        order = dict.fromkeys((*([main] if main in values else ()), "loss", *values))
        return {
            "values": {name: json_number(values[name]) for name in order},
            "split": trained.split,
            "examples": sums.count,
            "source": trained.name,
            "fingerprint": self._fingerprint,
        }


def _load(
    models: Sequence[Mapping[str, Any]], request: Mapping[str, Any], on_progress: Callable[[int, int], None]
) -> TrainedModel:
    """The trained model that some models have their data from: a run's, with raw rows for files, or a file's."""
    measured = [model for model in models if "file" not in model]
    if len(measured) == len(models):
        return load(measured[0], request, on_progress)
    # A checkpoint that was chosen is that of a measured run: others may not have it.
    directory, checkpoint = Path(models[0]["directory"]), request["checkpoint"] if measured else "auto"
    return of_run(directory, request["data"], request["split"], checkpoint, on_progress, keeps_raw=True)
