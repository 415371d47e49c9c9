"""A run that ``accel-tui train --on PLACE`` gives to a place: submitted, and shown as if it were here."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError
from accel_engine.places import PlaceName, PlaceRequest, placed_runs
from accel_engine.places.place import JobState, Place
from accel_engine.places.placed_runs import (
    check_strategy,
    cluster_environment,
    open_place,
    submit,
    submit_plan,
    write_place_files,
)
from accel_engine.plan import Plan
from accel_engine.plan.plan_file import read_plan_file
from accel_engine.process.start_run import prepare_continuation, prepare_run
from accel_engine.run import RunReader, find_run, read_run
from accel_engine.text import shell_command
from accel_tui.cli.chosen_plan import with_chosen_plan
from accel_tui.cli.follow_run import Interrupts, follow_run, view_for
from accel_tui.cli.output import print_to_stderr
from accel_tui.cli.output import write as print_line
from accel_tui.settings.user_settings import load_settings

_LOG_SECONDS = 2.0
"""Until a log is asked for again that has ended, or is not there yet."""

_NO_LOG_YET = ("No resources found", "waiting to start")
"""What ``kubectl logs`` says of pods that have printed nothing."""

_SILENCE_SECONDS = 600.0
"""How long a place may not answer while a job is followed."""

_JUDGEMENT_SECONDS = 60.0
"""How long the script of a job may take to judge how its run ended."""


def train_at_place(
    name: PlaceName,
    request: PlaceRequest,
    run: str | None,
    plan_file: Path | None,
    fields: Mapping[str, Any],
    *,
    as_json: bool,
    plain: bool,
    detach: bool,
) -> int:
    """Give a new or a continued run to a place, and show it until it ends.

    Args:
        name: The place.
        request: What is asked of it.
        run: The run to continue; ``None`` for a new one.
        plan_file: The plan of a new run; ``None`` for the settings alone.
        fields: Plan fields that are given as options.
        as_json: Whether to print JSON lines.
        plain: Whether to print log lines on a terminal too.
        detach: Whether to print the run's id and return.

    Returns:
        The exit status.
    """
    place = open_place(name)
    request = replace(request, nodes=place.nodes(request))
    devices, environment = place.describe(request), cluster_environment(request.nodes or 1)
    if run is not None:
        if request.write:
            raise UsageError("--write writes the files of a new run: give a plan")
        directory = _continue(place, request, find_run(run), fields, devices, environment)
    else:
        file = read_plan_file(plan_file) if plan_file else None

        def start(plan: Plan, devices: Sequence[Device]) -> Path | int:
            check_strategy(plan, request)
            if request.write:
                names = write_place_files(place, request, plan, devices)
                print_line("\n".join(str(Path(request.write, name)) for name in names))
                return 0

            if not place.has_run_here(request):
                return _train_there(place, submit_plan(place, request, plan, devices), detach=detach)

            def open_run() -> Path:
                return prepare_run(plan, devices, print_to_stderr, queued=True, environment=environment)

            return submit(place, request, plan, devices, open_run)

        submitted = with_chosen_plan(load_settings(), file, fields, start, devices)
        if isinstance(submitted, int):
            return submitted
        directory = submitted
    if detach:
        print_line(directory.name)
        return 0
    return _follow(directory, as_json=as_json, plain=plain)


def _continue(
    place: Place,
    request: PlaceRequest,
    directory: Path,
    changes: Mapping[str, Any],
    devices: Sequence[Device],
    environment: Mapping[str, str],
) -> Path:
    plan = read_run(directory).plan
    if plan is None:
        raise UsageError(f"run {directory.name} has no plan to continue")

    def open_run() -> Path:
        return prepare_continuation(
            directory, changes, print_to_stderr, queued=True, devices=devices, environment=environment
        )

    return submit(place, request, plan.replace(**changes), devices, open_run, is_new=False)


def _train_there(place: Place, job: str, *, detach: bool) -> int:
    """Show why a job waits and what it prints until it ends; Ctrl-C ends only that. Returns the exit status."""
    print_to_stderr(f"{place.name} has taken {job}")
    if detach:
        print_line(job)
        return 0
    try:
        return int(not _show_log(place, job).is_complete)
    except KeyboardInterrupt:
        print_to_stderr(f"{job} continues; show it again: {shell_command(place.log_command(job))}")
        return 0


def _show_log(place: Place, job: str) -> JobState:
    """Show what a job prints until it has ended: its log may not exist yet, and breaks off where it starts again."""
    told, problem, since, answered = "", "", None, time.monotonic()
    while True:
        try:
            state = place.state(job)
        except RunError:
            if time.monotonic() - answered > _SILENCE_SECONDS:
                raise
            time.sleep(_LOG_SECONDS)
            continue
        answered = time.monotonic()
        if state.reason != told:
            print_to_stderr(state.reason)
            told = state.reason
        done = subprocess.run(place.log_command(job, since), stderr=subprocess.PIPE, check=False)
        if state.is_over:
            return state
        said = done.stderr.decode(errors="replace").strip()
        if not any(words in said for words in _NO_LOG_YET):  # it was followed until it ended, or broke off
            since = time.time()
            if said and said != problem:
                print_to_stderr(said)
            problem = said
        time.sleep(_LOG_SECONDS)


def _follow(directory: Path, *, as_json: bool, plain: bool) -> int:
    """Show a run until it ends for good; Ctrl-C takes it from the place if it waits there, or stops it."""
    with closing(RunReader(directory)) as reader, Interrupts() as interrupts:
        reader.skip()
        return follow_run(reader, view_for(sys.stdout, as_json=as_json, plain=plain), interrupts, _wait_for_restart)


def _wait_for_restart(directory: Path) -> bool:
    """Whether the place of a run that has ended starts it again; if so, the run waits for that.

    The job's own script may be about to say so, which is waited for.
    """
    until = time.monotonic() + _JUDGEMENT_SECONDS
    while (found := placed_runs.starts_again(directory, newest=True)) is None and time.monotonic() < until:
        time.sleep(1.0)
    return bool(found)
