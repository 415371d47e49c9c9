"""The plan of a command: from a plan file, with options over it and the defaults of the settings that fit."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, PlanError, UsageError
from accel_engine.plan import USES, Plan
from accel_engine.plan.plan_checks import alternatives_to, without_ignored
from accel_engine.plan.plan_file import InvalidPlanError, PlanFile, read_plan_file, refers_to, valid_part
from accel_engine.plan.resolved_plan import ResolvedPlan, resolve
from accel_engine.process.start_run import for_a_new_run
from accel_engine.run import find_run, read_run
from accel_tui.cli.output import print_to_stderr
from accel_tui.plan.form import is_relevant
from accel_tui.settings.user_settings import Settings

Result = TypeVar("Result")


def with_chosen_plan(
    settings: Settings,
    file: PlanFile | None,
    flags: Mapping[str, Any],
    use: Callable[[Plan, Sequence[Device]], Result],
    devices: Sequence[Device] | None = None,
) -> Result:
    """Call a function with the plan that a user has chosen.

    Args:
        settings: Have defaults.
        file: The plan file; ``None`` without one. Its table ``[search]``, which is for a search, is left out.
        flags: The options that are given.
        use: Called with the plan and the machine's devices; may raise the plan's errors.
        devices: The devices of the machine that trains; by default this machine's.

    Returns:
        What ``use`` returns.

    Raises:
        InvalidPlanError: The plan has errors; in the settings and in the file with their lines.
    """
    file = file and _without_search(file)
    written = file.values if file else {}
    chosen, left_out = {**written, **flags}, list[PlanError]()
    devices = detect().devices if devices is None else devices
    values: Mapping[str, Any] = chosen
    if settings.plan:
        values, left_out = with_fitting_defaults(settings.plan, chosen, devices)

    def located(error: PlanError) -> str:
        if error.field in flags:
            return str(error)
        if file and error.field in written:
            return file.describe(error)
        return settings.source.at(f"plan.{error.field}", str(error)) if error.field in settings.plan else str(error)

    plan, invalid = valid_part(values)
    try:
        if invalid:
            raise InvalidPlanError([*invalid.values(), *_further_errors(plan, invalid, devices)])
        result = use(plan, devices)
    except (PlanError, InvalidPlanError) as error:
        lines = file.lines if file else {}
        found = error.errors if isinstance(error, InvalidPlanError) else (error,)
        raise InvalidPlanError(sorted(found, key=lambda each: lines.get(each.field, 0)), located) from error
    for misfit in left_out:
        print_to_stderr(settings.source.at(f"plan.{misfit.field}", f"not used for this run: {misfit}"))
    return result


def _without_search(file: PlanFile) -> PlanFile:
    if not isinstance(file.values.get("search"), Mapping):
        return file
    print_to_stderr(f"{file.path}: the table [search] is not used: it is for accel-tui search")
    return replace(file, values={name: value for name, value in file.values.items() if name != "search"})


def _further_errors(plan: Plan, invalid: Container[str], devices: Sequence[Device]) -> Iterator[PlanError]:
    """Errors of the machine or the data that do not depend on invalid fields."""
    if any(name in invalid for name in ("model", "data", "task", "strategy")):
        return
    with suppress(AccelError):
        for error in resolve(plan, devices).with_survey().plan_errors:
            if error.field not in invalid and not refers_to(error, invalid):
                yield error


def with_fitting_defaults(
    defaults: Mapping[str, Any], chosen: Mapping[str, Any], devices: Sequence[Device]
) -> tuple[dict[str, Any], list[PlanError]]:
    """Complete what is chosen for a run by the defaults that fit it.

    A default that has no effect is left out, as in the form, and so is one that contradicts what is chosen, or is for
    other tasks. A model, data or devices that do not fit are kept, so that the plan is refused.

    Args:
        defaults: Valid values by field.
        chosen: Values by name, which may be invalid; they are all kept.
        devices: The devices of the machine.

    Returns:
        The values, and why defaults with an effect are left out.
    """
    other_ways = {other for name in chosen for other in alternatives_to(name)}
    left = {name: value for name, value in defaults.items() if name not in chosen and name not in other_ways}
    reasons: list[PlanError] = []
    while True:
        values = without_ignored({**left, **chosen}, wanted=chosen)
        plan, invalid = valid_part(values)
        if not left or not invalid.keys().isdisjoint(("model", "data", "task", "strategy")):
            return values, reasons  # what fits is unknown, or the same for all
        resolved = _surveyed(plan, devices)
        misfits = [error for error in invalid.values() if error.field in left]
        misfits += [error for error in resolved.plan_errors if error.field in left and USES[error.field].fits_tasks]
        dropped = {name for name in left if name in values and not is_relevant(name, resolved, devices)}
        reasons += [error for error in misfits if error.field not in dropped]
        dropped |= {error.field for error in misfits}
        if not dropped:
            return values, reasons
        left = {name: value for name, value in left.items() if name not in dropped}


def _surveyed(plan: Plan, devices: Sequence[Device]) -> ResolvedPlan:
    """The plan with what is known of its data; if that cannot be read, as without it."""
    resolved = resolve(plan, devices)
    with suppress(AccelError):
        return resolved.with_survey()
    return resolved


def plan_of_run(reference: str) -> dict[str, Any]:
    """The fields of a run's plan, without what has no effect on this machine.

    Raises:
        UsageError: There is no such run, or it was not trained from a plan.
    """
    info = read_run(find_run(reference))
    if not info.has_engine or info.plan is None:
        raise UsageError(f"run {info.id} has no plan: give the run of a plan, or a plan file")
    return dict(for_a_new_run(info.plan).to_mapping())


def is_plan_file(plan_or_run: str) -> bool:
    """Whether an argument names a plan file, rather than a run."""
    path = Path(plan_or_run)
    return path.suffix in (".toml", ".json") or path.is_file()


def plan_file_or_run(plan_or_run: str | None, chosen: dict[str, Any]) -> PlanFile | None:
    """The plan file; the plan of a run, as far as no option overrides it, is added to the options."""
    if plan_or_run is None:
        return None
    if is_plan_file(plan_or_run):
        return read_plan_file(Path(plan_or_run))
    for name, value in plan_of_run(plan_or_run).items():
        chosen.setdefault(name, value)
    return None
