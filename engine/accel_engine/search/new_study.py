"""Begins a search: checks what is chosen, and writes its definition. Without Optuna until all else is right."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from accel_engine import models
from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.errors import FieldValue, PlanError, UsageError, join_words
from accel_engine.models import ModelEntry, UserModel
from accel_engine.models.data_description import describe_entry
from accel_engine.plan import PATH_FIELDS, Plan
from accel_engine.plan.interval import parse_duration
from accel_engine.plan.monitor import measured_names, wrong_monitor
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve, resolve_to_train
from accel_engine.plan.task_choices import metric_name
from accel_engine.process.engine_process import require_installation
from accel_engine.run.directory.run_paths import make_private
from accel_engine.run.store.series_names import VALIDATION_PREFIX, infer_monitor
from accel_engine.search import study_paths
from accel_engine.search.definition import (
    DIRECTION_OF_MODE,
    FIGURES,
    Parameter,
    SearchOptions,
    StudyDefinition,
    objectives_of,
)
from accel_engine.search.launch import is_search_running, require_optuna, resume_study
from accel_engine.search.ranges import check_grid, check_several
from accel_engine.search.study_database import StudyDatabase, create_study_database, exists_already
from accel_engine.search.trial_plan import plans_to_check

if TYPE_CHECKING:  # the first frame does not need it
    from accel_engine.search.runs_at_place import RunsAtPlace


def define(plan: Plan, given: Collection[str], options: SearchOptions) -> StudyDefinition:
    """Make the definition of a search.

    Args:
        plan: The plan; its monitor is the search's.
        given: Fields that a user has chosen, also where they have their default.
        options: All else.

    Raises:
        UsageError: Something is wrong, or contradicts something else.
        DataError: The data cannot be read.
    """
    parameters = check_several([_absolute(each) for each in options.parameters])
    for each in parameters:
        if each.name in given:
            raise PlanError(each.name, getattr(plan, each.name), "has a value and varies: leave out one of them")
    if options.sampler == "grid":
        check_grid(parameters)
    direction = options.direction or DIRECTION_OF_MODE.get(plan.monitor_mode, "")
    resolved = resolve(plan).with_survey()
    monitor = metric_name(plan.monitor) or default_monitor(resolved)
    _check_metrics(resolved, parameters, monitor, options.objectives)
    objectives = objectives_of(monitor, options.objectives, direction)
    values = plan.absolute().to_mapping()
    own = ("name", "seed", "monitor", "monitor_mode", *(each.name for each in parameters))
    kept = {name: values[name] for name in ({*plan.changed()} | {*given}) if name not in own and name in values}
    name = options.name or default_study_name(resolved.with_chosen_model().plan)
    study_paths.study_directory(name)
    return StudyDefinition(
        name=name,
        plan=kept,
        parameters=parameters,
        objectives=objectives,
        trials=options.trials,
        within=parse_duration("within", options.within) if options.within else None,
        sampler=options.sampler,
        pruner=options.pruner,
        seed=plan.seed,
        at_once=options.at_once,
        confirm=options.confirm,
        storage=study_paths.absolute_storage(options.storage),
        patience=options.patience,
    )


def begin_study(definition: StudyDefinition, devices: Sequence[Device], place: "RunsAtPlace | None" = None) -> Path:
    """Write the definition of a search, for a process to run it.

    Args:
        definition: What is searched.
        devices: The devices of the machine that trains a trial.
        place: Where trials train; ``None`` for this machine.

    Returns:
        The search's directory.

    Raises:
        EngineMissingError: Optuna or TensorFlow is missing.
        UsageError: A trial's plan could not be trained, a journal cannot be written, or there is a search of this name,
            here or on the storage.
        RunError: The storage cannot be reached, or the search cannot be written.
        DataError: The data cannot be read.
    """
    directory = study_paths.study_directory(definition.name)
    if (directory / study_paths.DATABASE).exists():
        raise exists_already(definition.name)
    if definition.storage:
        study_paths.check_journal(definition.storage)
    _check_plans(definition, devices, place)
    require_optuna()
    from accel_engine.search.storage import create_study

    create_study(directory, definition, **(place.part if place else {}))
    return directory


def start_study(plan: Plan, given: Collection[str], options: SearchOptions, place: "RunsAtPlace | None" = None) -> Path:
    """Begin a search, and start the process that runs it. Blocks.

    Args:
        plan: The plan; its monitor is the search's.
        given: Fields that a user has chosen, also where they have their default.
        options: All else.
        place: Where trials train; ``None`` for this machine.

    Returns:
        The search's directory.

    Raises:
        AccelError: The search cannot be defined, begun or started.
    """
    directory = begin_study(define(plan, given, options), place.devices if place else detect().devices, place)
    resume_study(directory)
    return directory


def join_study(
    storage: str,
    name: str,
    devices: Sequence[Device],
    at_once: int | None = None,
    place: "RunsAtPlace | None" = None,
) -> Path:
    """Join a search that another machine has begun; returns the directory of this machine's part.

    Args:
        storage: Path of a journal file, or URL of a database.
        name: Name of the search; empty for the only one on the storage.
        devices: The devices of the machine that trains a trial.
        at_once: Most trials at the same time of this machine; by default as many as it, or the place, has room for. A
            search that is here already keeps its number by default.
        place: Where this machine's trials train; ``None`` for here.

    Raises:
        EngineMissingError: Optuna or TensorFlow is missing.
        UsageError: The storage has no such search, another one here has its name, or it is here and would change its
            place or, while it runs, its number of trials at the same time.
        RunError: The storage cannot be reached.
        DataError: This machine cannot read the data.
    """
    require_optuna()
    from accel_engine.search.storage import load_definition

    storage = study_paths.absolute_storage(storage)
    definition = load_definition(storage, name)
    directory = study_paths.study_directory(definition.name)
    if (directory / study_paths.DATABASE).exists():
        with StudyDatabase(directory) as database:
            if database.part.storage != storage:
                raise UsageError(
                    f"there is another search {definition.name} here, with another storage: it cannot join"
                )
            if place:
                raise UsageError(f"the search {definition.name} is here already, and keeps its place: leave out --on")
            if at_once is not None:
                if is_search_running(directory):
                    raise UsageError(f"the search {definition.name} is running here: leave out --at-once")
                database.update(limits={**database.part.limits, "at_once": at_once})
        return directory
    _check_plans(definition, devices, place)
    make_private(directory)
    create_study_database(directory, storage, limits={"at_once": at_once or 0}, **(place.part if place else {}))
    return directory


def _check_plans(definition: StudyDefinition, devices: Sequence[Device], place: "RunsAtPlace | None") -> None:
    """Check that every choice and both ends of every range can be trained, and that TensorFlow is installed."""
    for plan in plans_to_check(definition):
        if place:
            place.check(plan)
        else:
            resolve_to_train(plan, devices)
    require_installation()


def default_monitor(resolved: ResolvedPlan) -> str:
    """The metric that a search looks at by default: the accuracy, or else the loss, of validation if there is one."""
    plan, described = resolved.plan, describe_entry(resolved.data, resolved.plan.task)
    task = plan.task if plan.task != "auto" else described.learned_task if described else "auto"
    prefix = "" if plan.validation == "off" else VALIDATION_PREFIX
    return f"{prefix}{infer_monitor(measured_names(plan, task), task)}"


def _absolute(parameter: Parameter) -> Parameter:
    """A parameter whose paths do not depend on the working directory."""
    if parameter.name not in PATH_FIELDS:
        return parameter
    choices = (getattr(Plan(**{parameter.name: each}).absolute(), parameter.name) for each in parameter.choices)
    return replace(parameter, choices=tuple(choices))


def default_study_name(plan: Plan) -> str:
    """A name of the model and the data that no search has yet; the model must be chosen."""
    base = re.sub(r"[^a-z0-9]+", "-", plan.title.lower().replace(" on ", "-")).strip("-")[:40] or "search"
    number, name = 1, base
    while (study_paths.studies_directory() / name).exists():
        number += 1
        name = f"{base}-{number}"
    return name


def _check_metrics(
    resolved: ResolvedPlan, parameters: Iterable[Parameter], monitor: str, further: Sequence[str]
) -> None:
    """Check that the models of the catalogue measure what a search compares; models of users may measure anything.

    Args:
        resolved: The plan, with a survey of its data.
        parameters: What varies.
        monitor: The plan's monitor.
        further: Other objectives, metrics or figures.

    Raises:
        PlanError: The monitor is not measured, or there is no such model.
        UsageError: An objective is not measured.
    """
    described = describe_entry(resolved.data, resolved.plan.task)
    varied = {each.name: each.choices for each in parameters}
    is_own = any(isinstance(models.find(str(name)), UserModel) for name in varied.get("model", ()))
    if described is None or is_own or "task" in varied or not isinstance(resolved.model, ModelEntry):
        return
    for name in (monitor, *further):
        metric = metric_name(name)
        if metric in FIGURES:
            continue
        plan = resolved.plan.replace(monitor=metric)
        wrong = wrong_monitor(plan, described.learned_task, ("metrics",))
        if wrong and name is monitor:
            raise PlanError("monitor", metric, *wrong)
        if wrong:
            raise UsageError(f"the objective {metric}: {join_words(wrong, _option)}")


def _option(part: FieldValue) -> str:
    """A field of a message about an objective, which is given as one."""
    return f"--objective {part.value}" if part.field == "monitor" else str(part)
