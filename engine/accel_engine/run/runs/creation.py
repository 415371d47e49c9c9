"""Creates run directories and assigns them to engine processes."""

import re
import secrets
import shlex
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from accel_engine import strategies
from accel_engine.clock import boot_seconds
from accel_engine.errors import PlanError, RunError, UsageError, file_errors
from accel_engine.events import EpochEnded, ModelBuilt, RunStarted
from accel_engine.files import link_or_copy, replacing
from accel_engine.json_values import encode
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import resolve
from accel_engine.plan.task_choices import IMAGENET, WEIGHT_FILES
from accel_engine.run.directory import run_paths
from accel_engine.run.engine.ownership import already_training_error, check_not_written_elsewhere
from accel_engine.run.engine.process_identity import ProcessIdentity, machine_id
from accel_engine.run.engine.status import read_info
from accel_engine.run.history.history import stored_history
from accel_engine.run.runs.listing import find_run
from accel_engine.run.runs.plan_changes import check_changes, check_epochs
from accel_engine.run.store.annotations import TAG_LENGTH
from accel_engine.run.store.database import DATABASE, create_file, writing
from accel_engine.run.store.meta import REOPENED, ImportSource, read_meta
from accel_engine.versioned_database import WRITING, database_errors

_QUEUED: dict[str, object] = {"pending": None, "queued": 1}
"""The ``meta`` rows of a run that waits in the queue."""

_ALPHABET = "abcdefghjkmnpqrstvwxyz23456789"
"""Letters and digits that are not easily confused."""


def create(plan: Plan, *, queued: bool = False, study: str = "", trial: int | None = None) -> Path:
    """Create the directory of a new run that waits for an engine.

    The run has the model that ``auto`` stands for, if the data is built in.

    Args:
        plan: The plan.
        queued: Whether it waits until :func:`assign_process` gives it an engine, however long that takes.
        study: Name of the search that it is a trial of, which is also its tag; empty for none.
        trial: Number of that trial; ``None`` for a run that confirms the best one.

    Returns:
        The directory. Its name is the run's id: four random letters and digits, then the plan's title.

    Raises:
        RunError: The directory of runs cannot be written.
        PlanError: The plan's initial weights do not exist, or their run has none yet.
    """
    plan = with_found_weights(resolve(plan).with_chosen_model().plan.absolute())
    directory = _new_directory(plan.title)
    tags = encode([study[:TAG_LENGTH]])
    of_study = {} if not study else {"study": study, "tags": tags} | ({} if trial is None else {"trial": trial})
    _initialize_run(directory, plan.to_json(), **of_study, **(_QUEUED if queued else {}))
    return directory


def create_recorded(
    values: Mapping[str, object], script: str, *, launched: bool = False, parent: Path | None = None
) -> Path:
    """Create the directory of a new run that a user's script trains, without an engine.

    Args:
        values: The known fields of a plan.
        script: The command line that starts the script.
        launched: Whether ``accel-tui run`` starts the script, so that its output is the run's log.
        parent: The directory of runs; by default this process'.

    Raises:
        RunError: The directory of runs cannot be written.
    """
    directory = _new_directory(str(values["name"] or f"{values['model']} on {values['data']}"), parent)
    _initialize_run(directory, encode(values), script=script, **({"launched": 1} if launched else {}))
    log = directory / run_paths.LOG
    with file_errors(f"cannot write the log of run {directory.name}"):
        log.touch(mode=0o600)
        if not launched:
            log.write_text(f"the script's output is in the terminal where it was started: {script}\n")
    return directory


def create_imported(
    values: Mapping[str, object], source: ImportSource, created: float, host: str = ""
) -> AbstractContextManager[Path]:
    """Create the directory of a run that another tool recorded, and give it under another name to be written.

    It becomes a run at the end of the block, once its writer is closed; after an exception, nothing is left.

    Args:
        values: The known fields of a plan, with a ``name``.
        source: Where it is imported from.
        created: When it was first written, in seconds since the Unix epoch.
        host: Host name of its machine; empty if unknown.

    Raises:
        RunError: The directory of runs cannot be written.
    """
    return _ended_run(str(values["name"]), values, created, host, source=encode(source))


def create_bench(values: Mapping[str, object], scenario: str, created: float) -> AbstractContextManager[Path]:
    """Create the directory of an inference bench, and give it under another name to be written.

    It becomes a run at the end of the block, once its writer is closed; after an exception, nothing is left.

    Args:
        values: The known fields of a plan, and how it was measured, with a ``name``.
        scenario: How requests came.
        created: When the measurement began, in seconds since the Unix epoch.

    Raises:
        RunError: The directory of runs cannot be written.
    """
    return _ended_run(f"bench {values['name']}", values, created, socket.gethostname(), bench=scenario)


@contextmanager
def _ended_run(title: str, values: Mapping[str, object], created: float, host: str, **made: str) -> Iterator[Path]:
    """Yield the directory of a run that no process of this machine trains, with what made it."""
    with new_run(title, ".import-") as unfinished:
        meta = {"created": created, "pending": None, "machine": None, "host": host}
        _initialize_run(unfinished, encode(values), **made, **meta)
        yield unfinished


@contextmanager
def new_run(title: str, prefix: str) -> Iterator[Path]:
    """Yield an empty directory of a new run, hidden in the directory of runs, to be written.

    It becomes a run at the end of the block; after an exception, nothing is left.

    Args:
        title: The id begins with letters and digits, and ends with this.
        prefix: Beginning of the name of the hidden directory.

    Raises:
        RunError: The directory of runs cannot be written.
    """
    directory = _new_directory(title)
    with (
        database_errors(f"run {directory}", WRITING),
        TemporaryDirectory(prefix=prefix, dir=directory.parent) as hidden,
    ):
        unfinished = Path(hidden, directory.name)
        unfinished.mkdir(mode=0o700)
        yield unfinished
        unfinished.rename(directory)


def _new_directory(title: str, parent: Path | None = None) -> Path:
    """Choose a directory that does not exist yet, in the directory of runs."""
    parent = parent or run_paths.runs_directory()
    run_paths.make_private(parent)
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower().replace(" on ", "-")).strip("-")[:32]
    while True:
        # An id starts with a letter, so that it does not look like a number.
        code = secrets.choice(_ALPHABET[:22]) + "".join(secrets.choice(_ALPHABET) for _ in range(3))
        directory = parent / f"{code}-{slug}".strip("-")
        if not any(parent.glob(f"{code}*")):
            return directory


def create_worker(run: Path, run_directory_name: str, plan: Plan) -> Path:
    """Create, or reopen, the run of a worker other than the chief, within the chief's run.

    A new worker of a run that has trained continues from the chief's checkpoints, which those of workers are equal to.

    Args:
        run: The chief's run directory.
        run_directory_name: The worker's :attr:`accel_engine.strategies.cluster_spec.ClusterSpec.run_directory_name`.
        plan: The plan of all workers.

    Raises:
        RunError: The run cannot be written.
        PlanError: Its checkpoint does not fit the plan.
    """
    directory = run / run_paths.WORKERS / run_directory_name
    if (directory / DATABASE).is_file():
        reopen(directory, plan)
    else:
        run_paths.make_private(directory.parent)
        if not strategies.find(plan.strategy).coordinated:  # a coordinator alone has checkpoints
            _take_checkpoints(run, directory)
        _initialize_run(directory, plan.absolute().to_json())
    return directory


def _take_checkpoints(run: Path, directory: Path) -> None:
    with file_errors(f"the checkpoints of run {run.name} cannot be copied to {directory}"):
        for path in (run / run_paths.CHECKPOINTS).glob("step-*.*"):
            target = directory / run_paths.CHECKPOINTS / path.name
            run_paths.make_private(target.parent)
            if not target.exists():
                with replacing(target) as unfinished:
                    link_or_copy(path, unfinished)


def _initialize_run(directory: Path, plan: str, **meta: object) -> None:
    run_paths.make_private(directory)
    stored = {"plan": plan, "created": time.time(), **_pending_meta(), **meta}
    try:
        # Under another name until it is complete, so that no listing reads half a run.
        with (
            database_errors(f"run {directory}", WRITING),
            replacing(directory / DATABASE) as unfinished,
        ):
            create_file(unfinished, **stored)
    except RunError:
        with suppress(OSError):
            directory.rmdir()
        raise


def assign_process(directory: Path, pid: int) -> None:
    """Record which process will train the run, so that its exit is noticed even before its first event.

    Raises:
        RunError: The run cannot be written, another process trains it, or it is on a host.
    """
    run_paths.check_is_here(directory, "only an engine there trains it")
    with writing(directory) as database:
        info = read_info(database, watched=False)
        if info.status.live and info.pid not in (None, pid):
            raise already_training_error(info)
        # Not if the process has already started the run: it is no longer pending.
        if {"pending", "queued"} & read_meta(database).keys():
            database.set_meta(pid=pid, process=encode(ProcessIdentity.of(pid)), **_pending_meta())


def reopen(directory: Path, plan: Plan, *, queued: bool = False) -> None:
    """Make an ended or lost run wait for an engine again, with a plan that may differ.

    Without a checkpoint it restarts from step 0, and the plan may be any. If another machine wrote a lost run, this
    takes :data:`~accel_engine.run.engine.ownership.WATCH_SECONDS`.

    Args:
        directory: The run's directory.
        plan: The plan.
        queued: Whether it waits until :func:`assign_process` gives it an engine, however long that takes.

    Raises:
        RunError: The run is being trained, is on a host, or cannot be written.
        PlanError: Its checkpoint does not fit the plan, or the plan's epochs are already trained.
    """
    run_paths.check_is_here(directory, "only an engine there trains it")
    plan = plan.absolute()
    check_not_written_elsewhere(directory)
    with writing(directory) as database:
        info = read_info(database, watched=False)
        if info.status.live:
            raise RunError(f"run {directory.name} is already being trained")
        if step := run_paths.latest_checkpoint(directory):
            check_changes(info.plan_values, plan)
            history = stored_history(database, RunStarted, ModelBuilt, EpochEnded)
            check_epochs(info, plan, history.trained_epochs(step))
        database.reject_commands()
        found = {row.key: row.value for row in database.meta_rows()}
        before = {"before": encode({key: found.get(key) for key in REOPENED})}
        waits = {**_pending_meta(), **(_QUEUED | before if queued else {})}
        database.set_meta(**{**dict.fromkeys(REOPENED), **waits, "plan": plan.to_json()})


def _pending_meta() -> dict[str, object]:
    """The ``meta`` rows of a run that waits for an engine on this machine from now on."""
    host = socket.gethostname()
    return {"pending": boot_seconds(), "queued": None, "before": None, "machine": machine_id(), "host": host}


def with_found_weights(plan: Plan) -> Plan:
    """A plan whose ``initial_weights`` name a run's directory, if they name a run.

    Raises:
        PlanError: There is no such run, it has no weights, or they are on a host.
    """
    source = plan.initial_weights
    if not source or source == IMAGENET or source.endswith(WEIGHT_FILES):
        return plan
    try:
        directory = find_run(source)
    except UsageError as error:
        reason = f"must be {IMAGENET}, a run, FILE.keras or FILE.weights.h5: {error}"
        raise PlanError("initial_weights", source, reason) from error
    if host := run_paths.host_of_run(directory):
        name = run_paths.run_name(directory)
        reason = f"the weights of {name} are on {host}: bring them here with accel-tui fetch {shlex.quote(name)}"
        raise PlanError("initial_weights", source, reason)
    if not run_paths.latest_checkpoint(directory) and run_paths.trained_model(directory) is None:
        reason = f"run {directory.name} has no weights yet: it has written neither a checkpoint nor model.keras"
        raise PlanError("initial_weights", source, reason)
    return plan.replace(initial_weights=str(directory.absolute()))
