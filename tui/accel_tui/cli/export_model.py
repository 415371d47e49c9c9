"""The model formats of ``accel-tui export``."""

from collections.abc import Iterator
from pathlib import Path

from accel_engine.errors import ModelError, UsageError
from accel_engine.formats import all_formats
from accel_engine.model_export.export_targets import (
    all_targets,
    check_target,
    default_folder,
    default_name,
    existing_folder,
    overwritten,
    target_at,
)
from accel_engine.plan import Plan
from accel_engine.process.ask import ask
from accel_engine.requests.export_model import Export, ExportRequest, ExportTarget, MeasuredModel
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_tui.cli.output import print_to_stderr, table, write, write_json
from accel_tui.formatting.model_export import (
    SIGNATURE,
    export_headline,
    model_header,
    model_rows,
    problems,
    signature_rows,
)
from accel_tui.formatting.runs import device_warnings

MODEL_FORMATS = (*(each.name for each in all_formats()), "all")
"""What ``--to`` takes besides the formats of tables; ``all`` are all formats of models."""


def export_trained_model(
    model: Path | Plan,
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
    """Export a trained model, and print what was measured.

    Args:
        model: The directory of its run, or a plan with its file and its data.
        file_format: One of :data:`MODEL_FORMATS`.
        output: The file or directory to write; ``None`` for one that is named after the run or file.
        quantize: The name of one of the format's precisions.
        checkpoint: ``auto``, ``best``, ``last`` or a step.
        tolerance: Instead of the formats' own tolerances.
        force: Whether existing files are overwritten.
        as_json: Whether to print a JSON object for each format instead of a table.
        target_latency: Seconds that a request to TensorFlow Serving may take; ``None`` for any.

    Raises:
        ModelError: Nothing was written; why.
        UsageError: The output cannot be written there.
    """
    name = Path(model.model).stem if isinstance(model, Plan) else model.name
    targets = _targets(name, file_format, quantize, output, tolerance)
    for target in targets:
        check_target(target)
        if isinstance(model, Plan) and Path(target.path).resolve() == Path(model.model).resolve():
            raise UsageError(f"{target.path} is the model that is exported: choose another path with --output")
        if not force and (there := overwritten(target)):
            raise UsageError(
                f"{there[0]} already exists: choose another path with --output, or overwrite it with --force"
            )
    folder = existing_folder(Path(targets[0].path).parent)
    for warning in device_warnings(("cpu",), can_choose=False):
        print_to_stderr(warning)
    found = ask(ExportRequest(ModelReference.of(model), tuple(targets), folder, checkpoint, target_latency))
    for note in found.notes:
        print_to_stderr(note)
    if as_json:
        for each in (found.original, *found.exported):
            write_json(_object(found, each))
    elif found.written:
        write("\n\n".join(_page(found)))
    if not found.written:
        raise ModelError("nothing was written: " + "; ".join(problems(found)))


def _targets(
    run: str, file_format: str, quantize: str, output: str | None, tolerance: float | None
) -> list[ExportTarget]:
    if file_format == "all":
        return all_targets(run, Path(output or default_folder(run)), tolerance)
    path = Path(output or default_name(run, file_format, quantize))
    return [target_at(path, file_format, quantize, tolerance)]


def _page(found: Export) -> Iterator[str]:
    yield export_headline(found)
    yield table(SIGNATURE, list(signature_rows(found.written[0])))
    metrics = list(found.original.metrics)
    yield table(model_header(metrics), model_rows(found, metrics))
    if reasons := list(problems(found)):
        yield "\n".join(("not written:", *(f"  {reason}" for reason in reasons)))
    yield "\n".join(found.paths)


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
