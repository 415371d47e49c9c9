"""Reports on the examples of a trained run, for Diagnostics: on any split, or on the validation, to be saved."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import tensorflow as tf

from accel_engine.data.dataset import Split
from accel_engine.data.structure import Batch, flatten, map_structure
from accel_engine.errors import ModelError, RunError
from accel_engine.keras_support.divisibility import answers_by_example
from accel_engine.keras_support.model_structure import fixed_batch, has_custom_train_step
from accel_engine.models.model_call import call_model
from accel_engine.requests.diagnose import Diagnosis, DiagnosisRequest
from accel_engine.requests.protocol.model_reference import EXAMPLES_AT_A_TIME
from accel_engine.requests.protocol.request import Send, reports, tells, unheard
from accel_engine.requests.revalidate import Revalidation, RevalidationRequest
from accel_engine.run import RunWriter, read_run
from accel_engine.run.diagnostics import DiagnosticsItem, ValidationReport
from accel_engine.run.directory.lock import WriterLock
from accel_engine.trained.open_trained import TrainedModel, open_trained
from accel_engine.trained.split_batches import ProgressReports, batches, number_of_examples
from accel_engine.training.evaluation.reports.choice import CUSTOM_STEP_REASON, report_for
from accel_engine.training.evaluation.task_report import input_spec_of
from accel_engine.training.evaluation.worst_examples import WorstExamples


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
        doing=tells(send),
    )
    tells(send)("predicting")
    items = examine(trained, reports(send))
    report = next((item for item in items if isinstance(item, ValidationReport)), None)
    if report is None:
        raise ModelError(f"the outputs of {trained.name} cannot be interpreted")
    return Diagnosis.of(trained.split, trained.step, report, trained.notes)


def revalidate(request: RevalidationRequest, send: Send = unheard) -> Revalidation:
    """Predict every validation example and save the evaluation report in the run.

    Args:
        request: Names a run that has ended and has a checkpoint.
        send: Takes how far it is.

    Raises:
        AccelError: The run is active, its model cannot be validated, or its data means something else.
    """
    directory = request.directory
    _check_ended(directory)
    trained = open_trained(directory, split="validation", progress=reports(send), doing=tells(send))
    tells(send)("predicting")
    _save_report(directory, examine(trained, reports(send)), trained.step)
    return Revalidation(trained.step, trained.notes)


def examine(trained: TrainedModel, on_progress: Callable[[int, int], None]) -> tuple[DiagnosticsItem, ...]:
    """Build the report of a validation on the examples with which a model was opened.

    Args:
        trained: The trained model.
        on_progress: Called now and then with the number of examples done, and of all.

    Raises:
        ModelError: The model has a custom ``train_step``.
    """
    model, examples, batch_size = trained.model, trained.examples, trained.plan.batch_size
    if has_custom_train_step(model):
        raise ModelError(CUSTOM_STEP_REASON)
    dataset = replace(trained.dataset, validation=examples)
    spec = input_spec_of(dataset, trained.scale)
    report = report_for(
        trained.task,
        dataset,
        trained.outputs,
        model.loss,
        scale=trained.scale,
        limits=(spec.low, spec.high) if spec else None,
        output_names=trained.output_names,
    )

    def measure(raw: Batch) -> tuple[tf.Tensor, tf.Tensor]:
        batch = trained.prepare(raw)
        outputs = call_model(model, batch.inputs, training=False)
        return report.measure(batch, outputs, tf.ones([tf.shape(flatten(batch)[0])[0]]))

    takes_any = fixed_batch(model) is None
    measure_batch = tf.function(measure, reduce_retracing=takes_any)
    worst = WorstExamples(examples, report, tf.function(trained.outputs_of, reduce_retracing=takes_any))
    totals, reports = np.zeros(report.totals), ProgressReports(on_progress, number_of_examples(examples))
    size = max(batch_size, EXAMPLES_AT_A_TIME) if answers_by_example(model) else batch_size
    for rows, raw in batches(examples, size):
        values, sums = measure_batch(map_structure(tf.convert_to_tensor, raw))
        totals += sums.numpy()
        by_row = rows[np.newaxis] if isinstance(examples, Split) else None
        worst.add(values.numpy(), int(rows[0]), by_row, raw, repeated=False)
        reports.add(int(rows[-1]) + 1)
    return report.build(worst.values, totals, worst.read, worst.predict)


def _check_ended(directory: Path) -> None:
    info = read_run(directory)
    if info.status.live:
        raise RunError(f"run {directory.name} is active: its own engine can validate it")


def _save_report(directory: Path, items: tuple[DiagnosticsItem, ...], step: int) -> None:
    _check_ended(directory)  # if the run was continued in the meantime, its own report is newer
    try:
        with WriterLock(directory), closing(RunWriter(directory)) as writer:
            for item in items:
                writer.write_diagnostics(item, step)
    except BlockingIOError as error:
        raise RunError(f"run {directory.name} is being trained again") from error
