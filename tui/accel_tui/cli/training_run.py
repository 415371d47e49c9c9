"""The run of a training command: creates or reopens it, hands it to an engine, and shows it until it ends."""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from accel_engine.devices import detect
from accel_engine.plan import isolation
from accel_engine.plan.plan_file import read_plan_file
from accel_engine.plan.resolved_plan import resolve
from accel_engine.process.start_run import prepare_continuation, prepare_run, start_on_engine
from accel_engine.process.warm_engine import WarmEngine
from accel_engine.run import RunReader, find_run, read_run
from accel_engine.run.engine.status import read_info
from accel_engine.run.store.database import DATABASE, reading
from accel_engine.run.writing.waiting_run import handing_over
from accel_engine.run_queue import queue
from accel_engine.run_queue.needs import find_need
from accel_engine.run_queue.queue_entries import QueueRequest
from accel_tui.cli.chosen_plan import with_chosen_plan
from accel_tui.cli.follow_run import Interrupts, follow_run, view_for
from accel_tui.cli.output import print_to_stderr, write
from accel_tui.settings.user_settings import load_settings

EXIT_SECONDS = 10.0
"""Seconds to wait for the engine process to exit after its run has ended."""


def open_run(run: str | None, plan_file: Path | None, fields: Mapping[str, Any], *, queued: bool = False) -> Path:
    """Reopen an ended run, to continue it from its last checkpoint, or create one, with the chosen plan.

    Args:
        run: The run to continue, as :func:`accel_engine.run.find_run` takes it; ``None`` for a new one.
        plan_file: A TOML or JSON file with the plan of a new run.
        fields: Plan fields that are given as options.
        queued: Whether it waits in the queue.

    Raises:
        RunError: The run is live, has no checkpoint, or cannot be continued here.
        PlanError: A changed field must not change, or all epochs are already trained.
        InvalidPlanError: The plan has errors; in the settings and in the file with their lines.
    """
    if run is not None:
        return prepare_continuation(find_run(run), fields, print_to_stderr, queued=queued)
    return with_chosen_plan(
        load_settings(),
        read_plan_file(plan_file) if plan_file else None,
        fields,
        lambda plan, devices: prepare_run(plan, devices, print_to_stderr, queued=queued),
    )


def train_run(directory: Path, engine: WarmEngine | None, *, as_json: bool, plain: bool, detach: bool) -> int:
    """Train a run that waits for an engine, and show its progress.

    Args:
        directory: The run's directory.
        engine: Has begun to import TensorFlow; ``None`` for a new one.
        as_json: Whether to print JSON lines.
        plain: Whether to print log lines on a terminal too.
        detach: Whether to train in the background.

    Returns:
        The exit status.
    """
    plan = read_run(directory).plan
    if plan and (warning := isolation.warning(resolve(plan, chosen=()))):
        print_to_stderr(f"warning: {warning}")
    if detach:
        start_on_engine(directory, engine)
        write(directory.name)
        return 0
    return _train_in_foreground(directory, engine, as_json=as_json, plain=plain)


def _restart_with_less_memory(directory: Path) -> bool:
    """Start the engine again that the system has killed for its memory; returns whether it did."""
    from accel_engine.keep_alive.memory_restart import restart_with_less_memory  # seldom needed

    return restart_with_less_memory(directory)


def _train_in_foreground(directory: Path, engine: WarmEngine | None, *, as_json: bool, plain: bool) -> int:
    """Hand a run to an engine and show the run until it ends."""
    try:
        with closing(RunReader(directory)) as reader, Interrupts() as interrupts:
            reader.skip()  # the events of an earlier engine were shown before
            process = start_on_engine(directory, engine)
            view = view_for(sys.stdout, as_json=as_json, plain=plain)
            status = follow_run(reader, view, interrupts, _restart_with_less_memory)
            with suppress(subprocess.TimeoutExpired):
                process.wait(EXIT_SECONDS)  # frees the accelerator for the next command of a script
            return status
    except BrokenPipeError:
        again = f": accel-tui watch {directory.name}" if (directory / DATABASE).is_file() else ""
        print_to_stderr(f"output closed; training continues in the background{again}")
        raise


def queue_run(run: str | None, plan_file: Path | None, fields: Mapping[str, Any], request: QueueRequest) -> int:
    """Add a run to the queue and print its id; see :func:`open_run`. Returns the exit status."""
    request = replace(request, after=tuple(dict.fromkeys(map(queue.find_run_id, request.after))))
    directory = open_run(run, plan_file, fields, queued=True)
    with handing_over(directory, "it could not be queued", is_new=run is None):
        with reading(directory) as database:
            plan = read_info(database).plan
        if plan:
            find_need(plan, request.devices, detect().devices, os.environ)
        queue.set_default_limit(load_settings().queue_at_once)
        queue.enqueue(directory, request)
    write(directory.name)
    return 0
