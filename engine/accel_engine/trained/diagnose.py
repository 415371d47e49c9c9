"""Reports on the examples that a trained model was evaluated on, for Diagnostics."""

from accel_engine.errors import ModelError
from accel_engine.requests.diagnose import Diagnosis, DiagnosisRequest
from accel_engine.requests.protocol.request import Send, reports, unheard
from accel_engine.run.diagnostics import ValidationReport
from accel_engine.trained.examine import examine
from accel_engine.trained.open_trained import open_trained


def diagnose(request: DiagnosisRequest, send: Send = unheard) -> Diagnosis:
    """Report on a split of a run's data, or on other data.

    Args:
        request: The run, and which examples.
        send: Takes how far it is.

    Raises:
        AccelError: The model cannot be restored, or the data does not fit it.
    """
    options = request.options
    trained = open_trained(
        request.directory,
        data=options.data,
        split=options.split,
        checkpoint=options.checkpoint,
        progress=reports(send),
    )
    items = examine(trained, reports(send))
    report = next((item for item in items if isinstance(item, ValidationReport)), None)
    if report is None:
        raise ModelError(f"the outputs of {trained.name} cannot be interpreted")
    return Diagnosis.of(trained.split, trained.step, report, trained.notes)
