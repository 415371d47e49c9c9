"""Reports on the examples that a trained model was evaluated on, for Diagnostics."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from accel_engine.data.data_options import no_progress
from accel_engine.errors import ModelError
from accel_engine.run.diagnostics import ValidationReport, serialize
from accel_engine.trained.examine import examine
from accel_engine.trained.restored_model import RestoredModel
from accel_engine.trained.trained_model import of_run
from accel_engine.training.core.run_scaling import scaler


def diagnose(request: Mapping[str, Any], on_progress: Callable[[int, int], None] = no_progress) -> dict[str, Any]:
    """Report on a split of a run's data, or on other data.

    Args:
        request: ``directory`` of the run; ``data``, ``split`` and ``checkpoint``: see :func:`of_run`; ``results``: the
            file for the report's body.
        on_progress: Called now and then with the number of examples done, and of all.

    Returns:
        ``split``, ``step`` and ``notes``: see :class:`accel_engine.requests.diagnose.Diagnosis`; ``head`` of the
        report, a JSON object.

    Raises:
        AccelError: The model cannot be restored, or the data does not fit it.
    """
    trained = of_run(Path(request["directory"]), request["data"], request["split"], request["checkpoint"], on_progress)
    compiled, dataset = trained.compiled, replace(trained.dataset, validation=trained.examples)
    scale = compiled.scaling.factor
    model = RestoredModel(compiled.model, compiled.task, compiled.outputs, scaler(scale, dataset))
    items = examine(model, dataset, scale, trained.plan.batch_size, on_progress)
    report = next((item for item in items if isinstance(item, ValidationReport)), None)
    if report is None:
        raise ModelError(f"the outputs of {trained.name} cannot be interpreted")
    head, body = serialize(report)
    Path(request["results"]).write_bytes(body)
    return {"split": trained.split, "step": trained.step, "notes": list(trained.notes), "head": json.loads(head)}
