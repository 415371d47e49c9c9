"""Making a run's directory, and handing it to the process that is to write the run."""

import json
import re
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from accel_engine.clock import boot_seconds
from accel_engine.errors import RunError
from accel_engine.plan import Plan
from accel_engine.run.ownership import already_training_error, refuse_written_elsewhere
from accel_engine.run.paths import LOG, WORKERS, latest_checkpoint, make_private, runs_directory
from accel_engine.run.plan_changes import check_changes, check_epochs
from accel_engine.run.process_identity import ProcessIdentity, machine_id
from accel_engine.run.schema import DATABASE, connect, initialize, transaction
from accel_engine.run.status import read_info

_ALPHABET = "abcdefghjkmnpqrstvwxyz23456789"
"""Letters and digits that are not mistaken for one another."""


def create(plan: Plan) -> Path:
    """Make a new run's directory, waiting for an engine.

    Returns:
        The directory; its name is the run's id: four random letters and digits, then what it trains.

    Raises:
        RunError: The place for runs cannot be written.
    """
    plan = plan.absolute()
    directory = _new(plan.title)
    _make(directory, plan.to_json())
    return directory


def create_recorded(values: Mapping[str, object], script: str) -> Path:
    """Make a new run's directory for what a script of the user's trains, which is not for an engine.

    Args:
        values: What of a plan's fields is known of it.
        script: The command line that trains it.

    Raises:
        RunError: The place for runs cannot be written.
    """
    directory = _new(str(values["name"] or f"{values['model']} on {values['data']}"))
    _make(directory, json.dumps(values), script=script)
    log = directory / LOG
    try:
        log.touch(mode=0o600)
        log.write_text(f"what the script prints is where it was started: {script}\n")
    except OSError as error:
        raise RunError(f"cannot write the log of run {directory.name}: {error.strerror}") from error
    return directory


def _new(title: str) -> Path:
    """A directory that is not there yet."""
    parent = runs_directory()
    make_private(parent)
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower().replace(" on ", "-")).strip("-")[:32]
    while True:
        # The first of an id is a letter, so that no id looks like a number.
        code = secrets.choice(_ALPHABET[:22]) + "".join(secrets.choice(_ALPHABET) for _ in range(3))
        directory = parent / f"{code}-{slug}".strip("-")
        if not any(parent.glob(f"{code}*")):
            return directory


def create_worker(run: Path, place: str, plan: Plan) -> Path:
    """Make, or let go on, the part of a run that a worker other than the chief writes: a run of its own within.

    Args:
        run: The chief's.
        place: The worker's, by :attr:`accel_engine.cluster_spec.ClusterSpec.run_name`.
        plan: What all of them train.

    Raises:
        RunError: It cannot be written.
        PlanError: Its checkpoint does not go with the plan.
    """
    directory = run / WORKERS / place
    if (directory / DATABASE).is_file():
        reopen(directory, plan)
    else:
        make_private(directory.parent)
        _make(directory, plan.absolute().to_json())
    return directory


def _make(directory: Path, plan: str, **meta: object) -> None:
    make_private(directory)
    try:
        # Under another name until it is complete: a listing meanwhile must not meet half a run.
        unfinished = directory / f"{DATABASE}.new"
        with closing(initialize(unfinished)) as connection:
            put(connection, plan=plan, created=time.time(), **_waiting(), **meta)
        unfinished.rename(directory / DATABASE)
    except (OSError, sqlite3.Error) as error:
        raise RunError(f"cannot write the run {directory}: {error}") from error


def hand_over(directory: Path, pid: int) -> None:
    """Note which process is to train the run, so that its death is seen even before its first word.

    Raises:
        RunError: The run cannot be written, or another process has it.
    """
    with _writing(directory) as connection:
        info = read_info(connection, directory)
        if info.status.live and info.pid not in (None, pid):
            raise already_training_error(info)
        # Not when the process was quicker and has begun already: then the run waits for nothing.
        if connection.execute("SELECT 1 FROM meta WHERE key = 'pending'").fetchone():
            put(connection, pid=pid, process=ProcessIdentity.of(pid).to_json(), **_waiting())


def reopen(directory: Path, plan: Plan) -> None:
    """Let an ended or lost run wait for an engine again, with a plan that may differ.

    Without a checkpoint it begins anew, and the plan may be any. Where another machine wrote a lost run, this takes
    :data:`~accel_engine.run.ownership.WATCH_SECONDS`.

    Raises:
        RunError: It is being trained at this moment, or cannot be written.
        PlanError: Its checkpoint does not go with the plan, or has nothing left of it to train.
    """
    plan = plan.absolute()
    refuse_written_elsewhere(directory)
    with _writing(directory) as connection:
        info = read_info(connection, directory)
        if info.status.live:
            raise RunError(f"run {directory.name} is being trained already")
        if step := latest_checkpoint(directory):
            check_changes(info.values, plan)
            built = connection.execute(
                "SELECT body FROM event WHERE kind = 'model_built' ORDER BY id DESC LIMIT 1"
            ).fetchone()
            length = json.loads(built[0])["steps_per_epoch"] if built else None
            check_epochs(info, plan, step / length if length else 0.0)
        refuse_commands(connection)
        put(connection, plan=plan.to_json(), pid=None, process=None, **_waiting())


def refuse_commands(connection: sqlite3.Connection) -> None:
    """Answer what was asked of an engine that ended without answering."""
    connection.execute(
        "UPDATE command SET answered = ?, obeyed = 0, answer = 'the engine had ended' WHERE answered IS NULL",
        (time.time(),),
    )


def _waiting() -> dict[str, object]:
    """What ``meta`` says of a run that waits for an engine of this machine from now on."""
    return {"pending": boot_seconds(), "machine": machine_id(), "host": socket.gethostname()}


@contextmanager
def _writing(directory: Path) -> Iterator[sqlite3.Connection]:
    """One transaction of somebody who is not the run's engine."""
    try:
        with closing(connect(directory)) as connection, transaction(connection):
            yield connection
    except sqlite3.Error as error:
        raise RunError(f"cannot write the run {directory.name}: {error}") from error


def put(connection: sqlite3.Connection, **values: object) -> None:
    """Set keys of ``meta``; ``None`` removes one."""
    for key, value in values.items():
        if value is None:
            connection.execute("DELETE FROM meta WHERE key = ?", (key,))
        else:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
