"""Exports the trained model of a run: writes each format, proves it, and keeps what is right."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from accel_engine.devices.host_probe import processors
from accel_engine.errors import RunError
from accel_engine.formats import BATCHING_FILE, format_named, open_model
from accel_engine.inference.output_differences import OutputScale
from accel_engine.inference.runtime import Runtime
from accel_engine.inference.text_encoding import sidecar_of
from accel_engine.json_values import json_number
from accel_engine.memory import available_memory
from accel_engine.model_export.artefacts import Artefacts, tensor_lines
from accel_engine.model_export.proof import Figures, Proof, failure_line
from accel_engine.model_export.raw_examples import RawExamples
from accel_engine.model_export.serving_batching import is_ours, write_batching
from accel_engine.requests.export_model import Export, ExportRequest, ExportTarget, MeasuredModel, WritingFormat
from accel_engine.requests.protocol.request import Send, reports, tells, unheard
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.training.memory_meters import HostMemory
from accel_engine.words import numbers

_OTHER_FORMATS = "; export to keras or savedmodel, which TensorFlow runs"
"""What helps where a format without TensorFlow differs from the trained model."""

BATCHING_EXAMPLES = 256
"""Examples with which the batching of requests is measured."""


def export(request: ExportRequest, send: Send = unheard) -> Export:
    """Export a trained model.

    Args:
        request: The model and the targets; its folder is an empty one, on the same file system as the targets.
        send: Takes how far it is, the name of each target before it is written for the comparison, then the trained
            model, and each exported one once it was compared, and kept or not.

    Raises:
        AccelError: The model cannot be restored or used.
    """
    trained = open_trained(
        request.model.model,
        split=request.split,
        checkpoint=request.checkpoint,
        keeps_raw=True,
        progress=reports(send),
        doing=tells(send),
    )
    artefacts = Artefacts(trained, trained.name)
    try:
        return export_models(artefacts, request, send)[0]
    except OSError as error:
        raise RunError(f"cannot read {error.filename or 'the examples'}: {error.strerror or error}") from error


def _written(target: ExportTarget, folder: Path) -> Path:
    """Where a model is written before it is kept."""
    return folder / target.name / Path(target.path).name


def export_models(artefacts: Artefacts, request: ExportRequest, send: Send) -> tuple[Export, dict[str, OutputScale]]:
    """Export a trained model that is open; returns the scale of each output, too.

    Args:
        artefacts: Writes the model.
        request: The targets.
        send: See :func:`export`.

    Raises:
        AccelError: The model cannot be used.
        OSError: The examples cannot be read.
    """
    trained, runtimes, problems = artefacts.trained, dict[str, Runtime](), dict[str, str]()
    targets, folder, notes = request.targets, request.folder, list(trained.notes)
    for target in targets:
        send(WritingFormat(target.name))
        written = _written(target, folder)
        try:
            written.parent.mkdir()
            artefacts.write(format_named(target.format), target.quantize, written)
            runtimes[target.name] = open_model(written)
        except Exception as error:  # noqa: BLE001 (libraries and layers raise anything; other formats may work)
            problems[target.name] = failure_line(error).replace(f"{written.parent}/", "")
    raw = RawExamples(trained.dataset, trained.split, trained.examples, trained.plan.batch_size)
    halves = {
        target.name: half for target in targets if (half := artefacts.half_precision(format_named(target.format)))
    }
    tolerances = {target.name: target.tolerance for target in targets}
    proof = Proof(trained, artefacts.complete, raw, tolerances, halves)
    proof.run(runtimes, reports(send))
    measured = proof.original()
    if changed := proof.in_float32():
        notes.append(_float32_note(halves, changed, measured))
    notes += _lost_in_outputs(measured)
    complete = artefacts.complete.model
    original = replace(
        measured_model("trained model", measured, size_of_weights(trained)),
        inputs=tensor_lines(complete.input),
        outputs=tensor_lines(complete.output),
    )
    send(original)
    exported = []
    for target in targets:
        runtime, batching = runtimes.get(target.name), ""
        found = proof.exported(target.name) if runtime else Figures(problem=problems[target.name])
        problem = found.problem or beyond(target, found)
        if runtime and not problem:
            if format_named(target.format).is_served:
                path = _written(target, folder).with_name(BATCHING_FILE)
                notes += _write_batching(path, trained.name, runtime, raw, request)
            try:
                batching = _keep_all(target, folder, request.umask, notes)
            except OSError as error:
                problem = f"cannot write {target.path}: {error.strerror or error}"
        described = measured_model(target.name, found, runtime.size if runtime else 0)
        kept = replace(described, path=target.path, problem=problem, batching=batching)
        exported.append(_with_signature(kept, runtime) if runtime else kept)
        send(exported[-1])
    done = Export(trained.name, trained.step, trained.split, raw.count, tuple(notes), original, tuple(exported))
    return done, proof.scales


def _lost_in_outputs(trained: Figures) -> Iterator[str]:
    """Notes on metrics of the trained model that what is served cannot tell."""
    for name, value in trained.metrics.items():
        served = trained.of_outputs.get(name, value)
        if not math.isclose(served, value, rel_tol=1e-3, abs_tol=1e-6):
            yield (
                f"{name}: {numbers.metric(value)} from the model's logits, {numbers.metric(served)} from its "
                "probabilities, which are all that exports give: compare theirs with that"
            )


def beyond(target: ExportTarget, figures: Figures, *, is_export: bool = True) -> str:
    """Why the model is not near enough to the trained one, and for an export what would be; empty if it is."""
    by_mean = format_named(target.format).precision(target.quantize).by_mean
    value, name = (figures.mean, "mean") if by_mean else (figures.largest, "largest")
    if not value <= target.tolerance:
        of = figures.differs[by_mean]
        words = f"difference of {of}" if of else "difference of the outputs"
        cure = _OTHER_FORMATS if is_export and not by_mean and not format_named(target.format).by_tensorflow else ""
        return f"the {name} {words}, {value:.2g}, is beyond the tolerance of {target.tolerance:g}{cure}"
    return figures.worse


def _float32_note(halves: Mapping[str, str], changed: Figures, original: Figures) -> str:
    """The note on formats without half precision, which compute in float32: how much that changes."""
    half, loss = next(iter(halves.values())), "loss"
    compute = "computes" if len(halves) == 1 else "compute"
    words = f"{', '.join(halves)} {compute} in float32, which has the same weights as {half}: outputs differ from the "
    words += f"trained model's by {changed.mean:.2g} in the mean, {changed.largest:.2g} at most"
    if loss not in original.metrics:
        return words
    return f"{words}; the loss is {numbers.metric(changed.metrics[loss])}, not {numbers.metric(original.metrics[loss])}"


def _with_signature(model: MeasuredModel, runtime: Runtime) -> MeasuredModel:
    """With a line about each input and output."""
    return replace(
        model,
        inputs={name: str(spec) for name, spec in runtime.inputs.items()},
        outputs={name: str(spec) for name, spec in runtime.outputs.items()},
    )


def _keep_all(target: ExportTarget, folder: Path, umask: int, notes: list[str]) -> str:
    """Move a model, and the configuration of batching if there is one, to where they are kept; the path of the latter.

    Raises:
        OSError: The model cannot be written there.
    """
    written = _written(target, folder)
    _keep(written, Path(target.path), umask)
    if not format_named(target.format).is_served:
        return ""
    path = Path(target.path).with_name(BATCHING_FILE)
    try:
        return _keep_batching(written.with_name(BATCHING_FILE), path, notes)
    except OSError as error:  # the model is kept, and right without
        notes.append(f"cannot write {path}: {error.strerror or error}")
        return ""


def _keep(written: Path, path: Path, umask: int) -> None:
    """Move what was written, with the file beside it, to where it is kept.

    An interruption may leave a model without the file beside it, but never with another model's.
    """
    for each in (written.parent, *written.parent.rglob("*")):
        each.chmod((0o777 if each.is_dir() else 0o666) & ~umask)
    for above in reversed(path.parents):
        if not above.exists():
            above.mkdir()
            above.chmod(0o777 & ~umask)
    beside = sidecar_of(written)
    if has_beside := beside.is_file():
        sidecar_of(path).unlink(missing_ok=True)
    written.replace(path)
    if has_beside:
        beside.replace(sidecar_of(path))


def _write_batching(path: Path, name: str, runtime: Runtime, raw: RawExamples, request: ExportRequest) -> list[str]:
    """Write how TensorFlow Serving should batch requests; returns notes for the user."""
    latency, examples = request.target_latency, raw.first(BATCHING_EXAMPLES)
    try:
        write_batching(path, name, runtime, examples, latency, processors(), HostMemory(), available_memory)
    except Exception as error:  # noqa: BLE001 (TensorFlow raises anything; the model is right without)
        return [f"{BATCHING_FILE} was not written: {failure_line(error)}"]
    return []


def _keep_batching(written: Path, path: Path, notes: list[str]) -> str:
    """Move the file to where it is kept, unless the user has changed the one there; returns its path, or nothing.

    Raises:
        OSError: The path cannot be read or written.
    """
    if not written.is_file():
        if path.exists():
            notes.append(f"{path} is of an older version of the model")
        return ""
    if path.exists() and not is_ours(path):
        notes.append(f"{path} was changed, and is not overwritten")
        return ""
    written.replace(path)
    return str(path)


def measured_model(name: str, figures: Figures, size: int) -> MeasuredModel:
    """The figures of a model under its name, with the bytes of its files or weights."""
    return MeasuredModel(
        name,
        {key: json_number(value) for key, value in figures.metrics.items()},
        json_number(figures.largest),
        json_number(figures.mean),
        size,
        json_number(figures.latency),
    )


def size_of_weights(trained: TrainedModel) -> int:
    """Bytes of the weights, without the optimizer's."""
    return sum(weight.numpy().nbytes for weight in trained.model.weights if str(weight.dtype) != "string")
