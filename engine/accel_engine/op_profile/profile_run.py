"""Profiles the operations of a run: a live one by a command to its engine or script, others by steps of the plan."""

import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from accel_engine import strategies
from accel_engine.devices import detect
from accel_engine.errors import AccelError, EngineMissingError, RunError, UsageError
from accel_engine.op_profile.options import SEVERAL_PROCESSES, ProfileOptions
from accel_engine.plan import Plan
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve_to_train
from accel_engine.process.engine_process import require_installation
from accel_engine.process.run_change import steps_taken
from accel_engine.process.start_run import for_a_new_run
from accel_engine.requests.profile_plan import ProfilePhase, ProfileRequest
from accel_engine.run import RunInfo, RunWriter, Status, diagnostics, read_run, send_command
from accel_engine.run.diagnostics import OpProfile
from accel_engine.run.directory.lock import WriterLock
from accel_engine.run.directory.run_paths import PROFILES, host_of_run, make_private
from accel_engine.run.engine.commands import read_answer, withdraw

ANSWER_SECONDS = 120.0
"""Seconds to wait for the answer after the trace: a validation may come before, and the trace is reduced."""

INTERVAL = 0.1
"""Seconds between two checks for the answer."""

LOCK = "profile.lock"

Ask = Callable[[ProfileRequest], OpProfile]
"""Asks an engine process."""


def check_profilable(info: RunInfo) -> None:
    """Check that a run can be profiled, before anything is started.

    Raises:
        UsageError: The run cannot be profiled; the message says why.
        EngineMissingError: No usable TensorFlow is installed.
    """
    if info.status is Status.QUEUED:
        raise UsageError(f"run {info.id} waits in the queue: profile it once it trains")
    if info.status.live:
        return
    if info.bench:
        raise UsageError(f"run {info.id} is a bench: only training is profiled")
    if not info.has_engine or info.plan is None:
        raise UsageError(f"run {info.id} is {info.status}, and has no plan to repeat its steps: profile a live run")
    try:
        check_profile_plan(for_a_new_run(info.plan))
    except EngineMissingError:
        raise
    except AccelError as error:  # such as data that is not there any more
        raise UsageError(f"run {info.id} is {info.status}, and its steps cannot be taken again: {error}") from error


def check_profile_plan(plan: Plan) -> ResolvedPlan:
    """Check that a plan can be trained as a new run, in one process.

    Raises:
        UsageError: The plan's strategy trains in several processes.
        AccelError: The plan does not fit the machine, the data or the model.
    """
    if strategies.find(plan.strategy).processes:
        raise UsageError(f"strategy {plan.strategy}: {SEVERAL_PROCESSES}")
    resolved = resolve_to_train(plan, detect().devices)
    require_installation()
    return resolved.with_chosen_model()


def profile_run(
    directory: Path,
    options: ProfileOptions,
    ask: Ask,
    on_phase: Callable[[ProfilePhase], object] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> OpProfile:
    """Profile a run; the profile becomes one of its diagnostics, and the trace stays in its directory.

    Args:
        directory: The run's directory.
        options: The duration.
        ask: Asks an engine process, for a run that is not live.
        on_phase: Called with each phase.
        should_stop: Whether to give up.

    Raises:
        UsageError: The run cannot be profiled.
        AccelError: Profiling failed.
    """
    info = read_run(directory)
    check_profilable(info)
    if info.status.live:
        on_phase(ProfilePhase(f"tracing steps for {options.seconds:g} s"))
        return _profile_live(directory, options, should_stop)
    assert info.plan is not None  # noqa: S101 (as was checked)
    plan = check_profile_plan(for_a_new_run(info.plan)).plan
    make_private(directory / PROFILES)
    try:
        with WriterLock(directory, LOCK):
            found = ask(ProfileRequest(plan, options.seconds, directory))
    except BlockingIOError as error:
        raise RunError(f"run {info.id} is being profiled already") from error
    return _stored_or_noted(directory, found)


def _profile_live(directory: Path, options: ProfileOptions, should_stop: Callable[[], bool]) -> OpProfile:
    before = _stored(directory)
    number = send_command(directory, "profile", options.seconds)
    deadline = time.monotonic() + options.seconds + ANSWER_SECONDS
    while (answer := read_answer(directory, number)) is None:
        is_cancelled = should_stop()
        if is_cancelled or time.monotonic() > deadline:
            with suppress(RunError):
                withdraw(directory, number)
            problem = "the profile was cancelled" if is_cancelled else f"run {directory.name} did not answer"
            raise RunError(f"{problem}; the profile may be among its diagnostics later")
        if not read_run(directory).status.live and read_answer(directory, number) is None:
            raise RunError(f"run {directory.name} ended before it was profiled")
        time.sleep(INTERVAL)
    obeyed, text = answer
    if not obeyed:
        raise RunError(f"run {directory.name} was not profiled: {text}")
    found = _stored(directory)
    if found is None or found == before:
        raise RunError(f"run {directory.name} was profiled, but has not stored the profile")
    return found


def _stored(directory: Path) -> OpProfile | None:
    return diagnostics.read(directory).operations


def _stored_or_noted(directory: Path, profile: OpProfile) -> OpProfile:
    """Store the profile in the run; if another process writes the run, or it is on a host, only add a note.

    Raises:
        RunError: The profile cannot be written.
    """
    if host := host_of_run(directory):
        return _noted(profile, f"the run is only written on {host}")
    try:
        with WriterLock(directory), closing(RunWriter(directory)) as writer:
            writer.write_diagnostics(profile, steps_taken(directory))
    except BlockingIOError:  # it has been continued meanwhile
        return _noted(profile, "the run is training")
    return profile


def _noted(profile: OpProfile, why: str) -> OpProfile:
    """The profile with a note that it was not stored."""
    return replace(profile, notes=(*profile.notes, f"This profile was not stored: {why}."))
