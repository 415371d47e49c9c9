"""Writes the folder of a served model: a verified export, its description and held-out examples."""

import hashlib
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from accel_engine import clock
from accel_engine.data.standardization import WindowNormalization
from accel_engine.data.structure import ArraySpec
from accel_engine.errors import RunError
from accel_engine.formats import format_named, open_model
from accel_engine.inference.keras_runtime import KerasRuntime
from accel_engine.inference.output_differences import OutputScale
from accel_engine.model_export.artefacts import Artefacts
from accel_engine.model_export.export import export_models
from accel_engine.model_export.raw_examples import RawExamples
from accel_engine.model_server.service import (
    Meaning,
    Scale,
    ServedModelFile,
    Service,
    Tensor,
    UploadForm,
    write_examples,
    write_service,
)
from accel_engine.requests.export_model import Export
from accel_engine.requests.protocol.request import Send, reports, unheard
from accel_engine.requests.write_service import ServiceRequest
from accel_engine.run import diagnostics
from accel_engine.trained.bench.trained_runtime import computing_in_float32
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.version import __version__


def write_service_folder(request: ServiceRequest, send: Send = unheard) -> Export:
    """Export a trained model, and write what a server needs beside it.

    Args:
        request: The model and one target.
        send: As in :func:`accel_engine.model_export.export.export`.

    Raises:
        AccelError: The model cannot be restored or used, or the folder cannot be written.
    """
    trained = open_trained(
        request.model.model, split=request.split, checkpoint=request.checkpoint, keeps_raw=True, progress=reports(send)
    )
    artefacts = Artefacts(trained, trained.name)
    try:
        found, scales = export_models(artefacts, request, send)
        if found.written:
            _write(artefacts, request, found, scales)
    except OSError as error:
        raise RunError(f"cannot use {error.filename or request.service_folder}: {error.strerror or error}") from error
    return found


def _write(artefacts: Artefacts, request: ServiceRequest, found: Export, scales: dict[str, OutputScale]) -> None:
    """Write the examples, and then the description: last, as a server loads only a folder with it."""
    trained, folder, (target,) = artefacts.trained, request.service_folder, request.targets
    kind, written = format_named(target.format), found.written[0]
    inputs = RawExamples(trained.dataset, trained.split, trained.examples).spread(request.held_out)
    with computing_in_float32(trained.model) if artefacts.half_precision(kind) else nullcontext():
        outputs = KerasRuntime(artefacts.complete.model, 0).run(inputs)
    write_examples(folder, inputs, outputs)
    runtime = open_model(Path(target.path))
    precision = kind.precision(target.quantize)
    path = str(Path(target.path).relative_to(folder))
    service = Service(
        name=request.served_name or found.name,
        version=request.version,
        run=found.name,
        step=found.step,
        task=trained.task.name,
        kind=trained.form.kind,
        data=trained.dataset.name,
        data_hash=_data_hash(request.model.path),
        made=clock.now(),
        versions=_versions(),
        model=ServedModelFile(target.format, target.quantize, path, target.tolerance, precision.by_mean, runtime.size),
        inputs=_tensors(runtime.inputs),
        outputs=_tensors(runtime.outputs),
        scales={
            name: Scale(tuple(each.center.tolist()), tuple(each.spread.tolist()), each.by_value)
            for name, each in scales.items()
        },
        batch_sizes=request.batch_sizes,
        class_names=trained.dataset.class_names,
        metrics={name: value for name, value in written.metrics.items() if value is not None},
        split=found.split,
        examples=len(next(iter(inputs.values()))),
        files=_file_form(trained),
        meanings=_meanings(artefacts),
    )
    write_service(folder, service)


def _tensors(specs: Any) -> tuple[Tensor, ...]:
    return tuple(Tensor(name, spec.shape, spec.dtype) for name, spec in specs.items())


def _versions() -> dict[str, str]:
    import keras
    import tensorflow as tf

    return {"accel-tui": __version__, "tensorflow": tf.__version__, "keras": keras.__version__, "numpy": np.__version__}


def _data_hash(path: Path) -> str:
    """A hash of all hashes of a run's data; empty if they are not known."""
    data = diagnostics.read(path).data if path.is_dir() else None
    if data is None:
        return ""
    return hashlib.sha256(json.dumps(dict(data.parts), sort_keys=True).encode()).hexdigest()


def _meanings(artefacts: Artefacts) -> tuple[Meaning, ...]:
    """The meaning of each served output."""
    names, forms = tuple(artefacts.complete.model.output), artefacts.trained.output_forms
    return tuple(
        Meaning(name, form.name, form.task.name, tuple(form.classes), tuple(form.columns))
        for name, form in zip(names, forms, strict=True)
    )


def _file_form(trained: TrainedModel) -> UploadForm:
    """How files become examples."""
    form, plan, spec = trained.form, trained.plan, trained.dataset.spec.inputs
    if form.table is not None:
        return UploadForm("table", columns=form.table.columns, categories=form.table.vocabularies)
    if not isinstance(spec, ArraySpec):
        return UploadForm()
    if (
        form.kind == "series"
        and form.feature_names
        and isinstance(trained.dataset.preprocess, WindowNormalization | None)
    ):
        return UploadForm(
            "series",
            columns=form.columns,
            features=form.feature_names,
            time=plan.time,
            group=plan.group,
            window=plan.window or 0,
        )
    if spec.dtype == "string":
        return UploadForm("text", features=form.feature_names)
    if form.kind == "audio" and form.sample_rate:
        return UploadForm("audio", sample_rate=form.sample_rate, window=plan.window or 0)
    image = trained.input_spec
    if image and image.is_image and tuple(image.shape) == spec.shape:
        return UploadForm("images", low=image.low, high=image.high, integers=image.integers)
    own = form.class_names in ((), form.vocabulary)
    if trained.task.name == "sequence" and form.vocabulary and own and len(spec.shape) == 1 and "int" in spec.dtype:
        return UploadForm("language", window=plan.window or 0, vocabulary=form.vocabulary)
    return UploadForm()
