"""Checks a service: its answers to the examples of a trained model's split, its metrics, and its speed."""

from dataclasses import replace

from accel_engine.formats import format_named, target_name
from accel_engine.inference.runtime import check_inputs
from accel_engine.model_export.artefacts import Artefacts, tensor_lines
from accel_engine.model_export.export import beyond, measured_model, size_of_weights
from accel_engine.model_export.export_options import FORMATS
from accel_engine.model_export.proof import Proof, failure_line
from accel_engine.model_export.raw_examples import RawExamples
from accel_engine.requests.check_service import (
    CheckServiceRequest,
    MeasuringService,
    ServiceCheck,
    ServiceLoad,
)
from accel_engine.requests.export_model import ExportTarget
from accel_engine.requests.protocol.model_reference import ModelReference
from accel_engine.requests.protocol.request import Send, reports, unheard
from accel_engine.run.directory.run_paths import checkpoint_steps
from accel_engine.service_client.find_service import ServedRun, find_service_of_run
from accel_engine.service_client.service_load import measured_load
from accel_engine.trained.open_trained import open_trained

SERVICE = "service"
"""What a service is called beside the trained model."""

EXAMPLES = 256
"""Different examples that are sent while the speed is measured."""


def check_service(request: CheckServiceRequest, send: Send = unheard) -> ServiceCheck:
    """Check a service.

    Args:
        request: The service and the model.
        send: Takes how far it is.

    Raises:
        ServiceError: The service cannot be reached, has no such model, or refuses a request.
        AccelError: The trained model cannot be restored or used.
    """
    options = request.options
    reference = request.reference
    told, service = find_service_of_run(reference.path, request.url, options, request.token)
    trained = open_trained(
        reference.model,
        split=options.split,
        checkpoint=_checkpoint(options.checkpoint, reference, told),
        keeps_raw=True,
        progress=reports(send),
    )
    artefacts = Artefacts(trained, trained.name)
    raw = RawExamples(trained.dataset, trained.split, trained.examples, trained.plan.batch_size)
    check_inputs(raw.first(1), service.inputs)
    kind, precision = _kind_of(told.format if told else service.platform)
    allowed = format_named(kind).precision(precision)
    tolerance = allowed.tolerance if options.tolerance is None else options.tolerance
    target = ExportTarget(SERVICE, kind, precision, "", tolerance)
    in_float32 = {SERVICE} if artefacts.half_precision(format_named(kind)) else ()
    proof = Proof(trained, artefacts.complete, raw, {SERVICE: tolerance}, in_float32)
    proof.run({SERVICE: service}, reports(send))
    figures = proof.exported(SERVICE)
    complete = artefacts.complete.model
    original = replace(
        measured_model("trained model", proof.original(), size_of_weights(trained)),
        inputs=tensor_lines(complete.input),
        outputs=tensor_lines(complete.output),
    )
    served = replace(
        measured_model(SERVICE, figures, 0),
        inputs={name: str(spec) for name, spec in service.inputs.items()},
        outputs={name: str(spec) for name, spec in service.outputs.items()},
        problem=figures.problem or beyond(target, figures, is_export=False),
        path=request.url,
    )
    notes = list(trained.notes)
    if told and (told.run, told.step) != (trained.name, trained.step):
        notes.append(f"the service says that it serves {told.run} at step {told.step:,}")
    loads: list[ServiceLoad] = []
    try:
        if options.seconds and not figures.problem:
            for connections in dict.fromkeys((1, options.connections)):
                send(MeasuringService(connections))
                loads.append(measured_load(service, raw.first(EXAMPLES), connections, options.seconds))
    except Exception as error:  # noqa: BLE001 (servers and clients fail in many ways; the answers were right)
        notes.append(f"its speed was not measured: {failure_line(error)}")
    return ServiceCheck(
        name=trained.name,
        step=trained.step,
        split=trained.split,
        examples=raw.count,
        notes=tuple(notes),
        protocol=service.name,
        model=service.model,
        version=service.version,
        platform=service.platform,
        server=service.server,
        tolerance=tolerance,
        by_mean=allowed.by_mean,
        original=original,
        served=served,
        loads=tuple(loads),
    )


def _checkpoint(wanted: str, reference: ModelReference, told: ServedRun | None) -> str:
    """The weights to compare with: those that a server tells it has, unless the user chose others."""
    if reference.directory is None:
        return "auto"
    if wanted == "auto" and told and told.run == reference.directory.name:
        return str(told.step) if told.step in checkpoint_steps(reference.directory) else wanted
    return wanted


def _kind_of(platform: str) -> tuple[str, str]:
    """The format and the precision of what a service runs, by its platform; ONNX for an unknown one.

    This program's own server calls them ``onnxruntime_onnx``, ``litert_tflite-int8`` and so on; others ``onnx_onnxv1``
    or ``tensorflow_savedmodel``.
    """
    exact = [kind for kind in FORMATS if target_name(*kind) == platform.rpartition("_")[2]]
    if exact:
        return exact[0]
    if platform.startswith(("tensorflow", "savedmodel")):
        return "savedmodel", "none"
    return "onnx", "none"
