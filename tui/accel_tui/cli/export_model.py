"""The model formats of ``accel-tui export``."""

from collections.abc import Iterator
from pathlib import Path

from accel_engine.errors import ModelError, UsageError
from accel_engine.model_export.export_targets import (
    ExportOptions,
    check_target,
    chosen_targets,
    existing_folder,
    overwritten,
)
from accel_engine.plan import Plan
from accel_engine.process.ask import ask
from accel_engine.requests.export_model import Export, ExportRequest, MeasuredModel
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


def export_trained_model(model: Path | Plan, options: ExportOptions, *, as_json: bool) -> None:
    """Export a trained model, and print what was measured.

    Args:
        model: The directory of its run, or a plan with its file and its data.
        options: They have one format of models.
        as_json: Whether to print a JSON object for each format instead of a table.

    Raises:
        ModelError: Nothing was written; why.
        UsageError: The output cannot be written there.
    """
    targets = chosen_targets(Path(model.model).stem if isinstance(model, Plan) else model.name, options)
    for target in targets:
        check_target(target)
        if isinstance(model, Plan) and Path(target.path).resolve() == Path(model.model).resolve():
            raise UsageError(f"{target.path} is the model that is exported: choose another path with --output")
        if not options.force and (there := overwritten(target)):
            raise UsageError(
                f"{there[0]} already exists: choose another path with --output, or overwrite it with --force"
            )
    folder = existing_folder(Path(targets[0].path).parent)
    for warning in device_warnings(("cpu",), can_choose=False):
        print_to_stderr(warning)
    reference = ModelReference.of(model)
    found = ask(ExportRequest(reference, tuple(targets), options.checkpoint, options.target_latency, folder=folder))
    for note in found.notes:
        print_to_stderr(note)
    if as_json:
        for each in (found.original, *found.exported):
            write_json(_object(found, each))
    elif found.written:
        write("\n\n".join(_page(found)))
    if not found.written:
        raise ModelError("nothing was written: " + "; ".join(problems(found)))


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
