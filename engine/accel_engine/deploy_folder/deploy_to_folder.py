"""Deploys a trained model to a folder that stands alone: exports it, proves it, and writes all that serves it."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from accel_engine.deploy_folder.container import write_server_folder
from accel_engine.deploy_folder.facts import Facts, read_facts
from accel_engine.deploy_folder.folder_options import LITERT, FolderOptions
from accel_engine.deploy_folder.litert import name_of, write_litert_folder
from accel_engine.deploy_folder.model_card import model_card
from accel_engine.deploy_folder.tensorflow_serving import write_serving_folder
from accel_engine.deploy_folder.write_folder import check_folder, writing_folder
from accel_engine.deployment.deploy import Deployer
from accel_engine.deployment.deploy_options import AUTO, OF_SERVERS, TARGETS, DeployOptions
from accel_engine.deployment.deployments import Deployment, changing
from accel_engine.deployment.server_control import require_server
from accel_engine.deployment.sizing import Sizing
from accel_engine.deployment.write_version import Ask, DeployStep, Tell, write_version
from accel_engine.errors import AccelError, ModelError, UsageError
from accel_engine.formats import format_named
from accel_engine.model_export.export_options import target_at
from accel_engine.model_server.service import read_service
from accel_engine.plan.options import default_of, specs_of
from accel_engine.requests.evaluate import Evaluation, EvaluationOptions, EvaluationRequest
from accel_engine.requests.export_model import Export, ExportRequest
from accel_engine.requests.protocol.model_reference import ModelReference, check_steps
from accel_engine.run.directory.run_paths import plain_name
from accel_engine.user_paths import absolute_path, user_path


@dataclass(frozen=True, slots=True)
class WrittenFolder:
    """A folder that was written."""

    path: Path
    target: str
    """The target of the folder, such as ``kubernetes``."""
    facts: Facts
    notes: tuple[str, ...]
    """Warnings for the user."""


def check_folder_deploy(run: Path, options: DeployOptions, folder: FolderOptions) -> None:
    """Raise what can be told before TensorFlow starts.

    Raises:
        UsageError: An option is not for this folder, or there is something where it is to be.
        ModelError: Libraries of the format are missing.
        AccelError: The server's libraries are missing, or the run has no checkpoint.
    """
    for name in OF_SERVERS:
        if getattr(options, name) != default_of(DeployOptions, name):
            flag = specs_of(DeployOptions)[name].flag(name)
            raise UsageError(f"{flag} is for a server that is started here; the README of a folder says how to set it")
    wanted = options.format
    if folder.formats and wanted != AUTO and TARGETS[wanted][0] not in folder.formats:
        where = folder.target if folder.accelerator == "cpu" else folder.accelerator
        raise UsageError(f"--format {wanted}: a folder for {where} takes {', '.join(folder.formats)}")
    if folder.target == LITERT and wanted not in (AUTO, "tflite"):
        raise UsageError(f"--format {wanted}: a folder for {LITERT} has all precisions of tflite, leave it out")
    takes = (*folder.formats, "onnx")[0] if wanted == AUTO else wanted
    if folder.storage and takes != "savedmodel":
        raise UsageError("--storage is where KServe finds a SavedModel: give --format savedmodel")
    if options.target_latency is not None and not folder.has_server:
        raise UsageError(f"--target-latency is measured with accel-tui's server; a folder for {folder.target} has none")
    check_folder(user_path(folder.to), replaces=folder.replace)
    if folder.has_server:
        require_server()
    for name in folder.formats:
        if missing := format_named(name).precisions[0].missing:
            raise ModelError(missing)
    check_steps((run,), options.checkpoint)
    ModelReference.of(run).check()


def deploy_to_folder(run: Path, options: DeployOptions, folder: FolderOptions, ask: Ask, tell: Tell) -> WrittenFolder:
    """Write the folder; nothing is left of it if that fails.

    Args:
        run: The run's directory.
        options: How the model is exported.
        folder: What is written, and where.
        ask: Asks engines.
        tell: Takes what is going on; if it raises, nothing is written.

    Raises:
        AccelError: The folder cannot be written, or its server does not answer as the trained model does.
    """
    check_folder_deploy(run, options, folder)
    if options.format == AUTO and folder.formats:
        options = replace(options, format=folder.formats[0])
    path, notes = absolute_path(user_path(folder.to)), list[str]()
    with writing_folder(path) as written:
        servable = written / "model" if folder.has_server else written.with_name("servable")
        servable.mkdir()
        export, sizing = _exported(run, options, servable, ask, tell)
        notes += export.notes
        service = read_service(servable)
        tell(DeployStep("evaluating the run"))
        evaluation = _evaluated(run, options, ask, notes)
        facts = read_facts(run, service, export, evaluation, folder.licence)
        if folder.has_server:
            tell(DeployStep("proving the folder's server"))
            threads = (sizing and sizing.threads) or options.threads or 1
            facts = write_server_folder(written, replace(facts, sizing=sizing), folder, threads)
        elif folder.target == LITERT:
            write_litert_folder(written, servable, facts, _quantized(run, options, written, ask, tell))
        else:
            write_serving_folder(written, servable, facts, folder)
        (written / "MODEL_CARD.md").write_text(model_card(facts), "utf-8")
        tell(DeployStep("writing the folder"))  # the last one that may end it
    return WrittenFolder(path, folder.target, facts, tuple(notes))


def _exported(run: Path, options: DeployOptions, servable: Path, ask: Ask, tell: Tell) -> tuple[Export, Sizing | None]:
    """Export the model, and measure formats and threads first if there is a target."""
    name = options.name or plain_name(run)
    if options.target_latency is None:
        return write_version(run, options, options.format, servable, name, 1, ask, tell)[0], None
    with changing(name) as directory:
        place = directory / "folder"
        try:
            empty = Deployment(name=name, host="127.0.0.1", port=0)
            export, sizing = Deployer(ask, tell).write_best(empty, run, options, place, 1)
            shutil.copytree(place, servable, dirs_exist_ok=True)
        finally:
            shutil.rmtree(place, ignore_errors=True)
    return export, sizing


def _evaluated(run: Path, options: DeployOptions, ask: Ask, notes: list[str]) -> Evaluation | None:
    """The metrics of a run with intervals; ``None`` where it cannot be evaluated, which the notes then say."""
    asked = EvaluationOptions(checkpoint=options.checkpoint, device=options.computes_on)
    try:
        found: Evaluation = ask(EvaluationRequest((ModelReference.of(run),), asked))
    except AccelError as error:
        notes.append(f"the model card has no intervals: {error}")
        return None
    return found


def _quantized(run: Path, options: DeployOptions, folder: Path, ask: Ask, tell: Tell) -> Export | None:
    """Write the model in the other precisions of LiteRT, if their outputs are equal to the trained model's."""
    tell(DeployStep("exporting in other precisions"))
    targets = tuple(
        target_at(folder / name_of(each.name), "tflite", each.name)
        for each in format_named("tflite").precisions[1:]
        if not each.missing
    )
    return ask(ExportRequest(ModelReference.of(run), targets, options.checkpoint, folder=folder.parent))
