"""The model formats of ``accel-tui export``: where files go, and the table of what was measured."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from accel_engine.errors import ModelError, UsageError
from accel_engine.launch.model_export import (
    BATCHING_FILE,
    QUANTIZATIONS,
    TOLERANCES,
    Export,
    ExportTarget,
    MeasuredModel,
    export_model,
    target_name,
)
from accel_engine.text import format_metric
from accel_engine.user_paths import exists, is_directory
from accel_tui.cli.output import print_to_stderr, write, write_json
from accel_tui.cli.table import table

MODEL_FORMATS = ("keras", "savedmodel", "tflite", "onnx", "all")
"""What ``--to`` takes besides the formats of tables; ``all`` are all formats of models."""

_SUFFIXES = {"keras": ".keras", "tflite": ".tflite", "onnx": ".onnx"}


def export_trained_model(
    directory: Path,
    file_format: str,
    output: str | None,
    *,
    quantize: str,
    checkpoint: str,
    tolerance: float | None,
    force: bool,
    as_json: bool,
    target_latency: float | None = None,
) -> None:
    """Export a run's trained model, and print what was measured.

    Args:
        directory: The run's directory.
        file_format: One of :data:`MODEL_FORMATS`.
        output: The file or directory to write; ``None`` for one that is named after the run.
        quantize: One of :data:`accel_engine.launch.model_export.QUANTIZATIONS`; for ``tflite`` only.
        checkpoint: ``auto``, ``best``, ``last`` or a step.
        tolerance: Instead of those of :data:`accel_engine.launch.model_export.TOLERANCES`.
        force: Whether existing files are overwritten.
        as_json: Whether to print a JSON object for each format instead of a table.
        target_latency: Seconds that a request to TensorFlow Serving may take; ``None`` for any.

    Raises:
        ModelError: Nothing was written; why.
        UsageError: The output cannot be written there.
    """
    targets = _targets(directory.name, file_format, quantize, output, tolerance)
    for target in targets:
        _check(target, force=force)
    folder = _existing(Path(targets[0].path).parent)
    found = export_model(directory, targets, folder, checkpoint, target_latency=target_latency)
    for note in found.notes:
        print_to_stderr(note)
    if as_json:
        for each in (found.original, *found.exported):
            write_json(_object(found, each))
    elif found.written:
        write("\n\n".join(_page(found)))
    if not found.written:
        raise ModelError("nothing was written: " + "; ".join(_problems(found)))


def _targets(
    run: str, file_format: str, quantize: str, output: str | None, tolerance: float | None
) -> list[ExportTarget]:
    if file_format != "all":
        path = Path(output or _default_path(run, file_format, quantize))
        return [_target(path, file_format, quantize, tolerance)]
    folder = Path(output or f"{run}-models")
    formats = [
        ("keras", "none"),
        ("savedmodel", "none"),
        ("onnx", "none"),
        *(("tflite", each) for each in QUANTIZATIONS),
    ]
    return [_target(folder / _default_path(run, kind, each), kind, each, tolerance) for kind, each in formats]


def _target(path: Path, file_format: str, quantize: str, tolerance: float | None) -> ExportTarget:
    name = target_name(file_format, quantize)
    if file_format == "savedmodel":
        path /= str(_next_version(path))
    return ExportTarget(
        name, file_format, quantize, str(path.absolute()), TOLERANCES[name] if tolerance is None else tolerance
    )


def _default_path(run: str, file_format: str, quantize: str) -> str:
    if file_format == "savedmodel":
        return f"{run}-savedmodel"
    return f"{run}{'' if quantize == 'none' else f'-{quantize}'}{_SUFFIXES[file_format]}"


def _next_version(path: Path) -> int:
    """The version that TensorFlow Serving takes for the newest."""
    return max((int(name) for name in _names(path) if name.isdecimal()), default=0) + 1


def _check(target: ExportTarget, *, force: bool) -> None:
    """Raise an error if a model cannot be written to its path.

    Raises:
        UsageError: It is there already, it is of the wrong kind, or it has the suffix of another format.
    """
    path = Path(target.path)
    if target.format == "savedmodel":
        above = path.parent
        if exists(above) and not is_directory(above):
            raise UsageError(f"{above} is a file: choose another path with --output")
        if path.name == "1" and set(_names(above)) - {BATCHING_FILE}:
            raise UsageError(f"{above} has other files than versions of a model: choose another path with --output")
        return
    if path.suffix != _SUFFIXES[target.format]:
        raise UsageError(f"{path.name}: the name of a model in this format ends with {_SUFFIXES[target.format]}")
    for each in target.files:
        if is_directory(each):
            raise UsageError(f"{each} is a directory: choose another path with --output")
        if exists(each) and not force:
            raise UsageError(f"{each} already exists: choose another path with --output, or overwrite it with --force")


def _names(directory: Path) -> list[str]:
    """The names in a directory; none if it is not there.

    Raises:
        UsageError: It cannot be read.
    """
    if not is_directory(directory):
        return []
    try:
        return os.listdir(directory)
    except OSError as error:
        raise UsageError(f"cannot read {directory}: {error.strerror}") from error


def _existing(path: Path) -> Path:
    """The path, or the directory above it that is there."""
    while not exists(path) and path != path.parent:
        path = path.parent
    if not is_directory(path):
        raise UsageError(f"{path} is a file: choose another path with --output")
    return path


def _page(found: Export) -> Iterator[str]:
    examples = f"{found.examples:,} " if found.examples else ""
    yield f"{found.name} at step {found.step:,}, verified on {examples}{found.split} examples"
    yield table(("SIGNATURE", "NAME", "TYPE"), list(_signature_rows(found.written[0])))
    metrics = list(found.original.metrics)
    header = ("MODEL", *(name.upper() for name in metrics), "DIFFERENCE", "SIZE", "LATENCY", "")
    rows = [_row(each, metrics, found) for each in (found.original, *found.written)]
    yield table(header, rows)
    if problems := list(_problems(found)):
        yield "\n".join(("not written:", *(f"  {problem}" for problem in problems)))
    yield "\n".join(path for each in found.written for path in (each.path, each.batching) if path)


def _signature_rows(model: MeasuredModel) -> Iterator[tuple[str, str, str]]:
    for kind, tensors in (("input", model.inputs), ("output", model.outputs)):
        for name, text in tensors.items():
            yield kind, name, text


def _row(model: MeasuredModel, metrics: Sequence[str], found: Export) -> tuple[str, ...]:
    values = (model.metrics.get(name) for name in metrics)
    difference = "" if model is found.original else _number(model.largest)
    mark = "fastest" if model is found.fastest else ""
    latency = "" if model.latency is None else f"{model.latency * 1000:.3g} ms"
    return (model.name, *map(_number, values), difference, _size(model.size), latency, mark)


def _number(value: float | None) -> str:
    return "none" if value is None else format_metric(value) if value else "0"


def _size(size: int) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size = size / 1000  # type: ignore[assignment]
    return f"{size:.3g} GB"


def _problems(found: Export) -> Iterator[str]:
    for each in found.exported:
        if each.problem:
            yield f"{each.name}: {each.problem}"


def _object(found: Export, model: MeasuredModel) -> dict[str, object]:
    """What is known of a model, as a JSON object."""
    return {
        "run": found.name,
        "step": found.step,
        "split": found.split,
        "examples": found.examples,
        "model": model.name,
        "path": model.path if not model.problem else None,
        "batching": model.batching or None,
        "problem": model.problem or None,
        "fastest": model is found.fastest,
        "inputs": model.inputs,
        "outputs": model.outputs,
        "largest_difference": model.largest,
        "mean_difference": model.mean,
        "size": model.size,
        "latency": model.latency,
        "metrics": model.metrics,
    }
