"""Reports on the examples that a trained model was evaluated on, for Diagnostics."""

from dataclasses import replace

from accel_engine.errors import ModelError
from accel_engine.requests.diagnose import Diagnosis, DiagnosisRequest
from accel_engine.requests.protocol.request import Send, reports, unheard
from accel_engine.run.diagnostics import ValidationReport
from accel_engine.trained.examine import examine
from accel_engine.trained.restored_model import RestoredModel
from accel_engine.trained.trained_model import of_run
from accel_engine.training.core.run_scaling import scaler


def diagnose(request: DiagnosisRequest, send: Send = unheard) -> Diagnosis:
    """Report on a split of a run's data, or on other data.

    Args:
        request: The run, and which examples.
        send: Takes how far it is.

    Raises:
        AccelError: The model cannot be restored, or the data does not fit it.
    """
    options, on_progress = request.options, reports(send)
    trained = of_run(request.directory, options.data, options.split, options.checkpoint, on_progress)
    compiled, dataset = trained.compiled, replace(trained.dataset, validation=trained.examples)
    scale = compiled.scaling.factor
    model = RestoredModel(compiled.model, compiled.task, compiled.outputs, scaler(scale, dataset))
    items = examine(model, dataset, scale, trained.plan.batch_size, on_progress)
    report = next((item for item in items if isinstance(item, ValidationReport)), None)
    if report is None:
        raise ModelError(f"the outputs of {trained.name} cannot be interpreted")
    return Diagnosis.of(trained.split, trained.step, report, trained.notes)
