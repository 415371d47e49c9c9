"""The plan of a command: that of a plan file, with options over it and the defaults of the settings that fit."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from accel_engine.devices import detect
from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, PlanError
from accel_engine.plan import Plan
from accel_engine.plan.plan_errors import InvalidPlanError, refers_to, valid_part
from accel_engine.plan.plan_file import PlanFile
from accel_engine.plan.resolved_plan import resolve
from accel_tui.cli.output import print_to_stderr
from accel_tui.plan.fitting_defaults import with_fitting_defaults
from accel_tui.settings.user_settings import Settings

Result = TypeVar("Result")


def with_chosen_plan(
    settings: Settings,
    file: PlanFile | None,
    flags: Mapping[str, Any],
    use: Callable[[Plan, Sequence[Device] | None], Result],
) -> Result:
    """Call a function with the plan that a user has chosen.

    Args:
        settings: Have defaults.
        file: The plan file; ``None`` without one. Its table ``[search]``, which is for a search, is left out.
        flags: The options that are given.
        use: Called with the plan and the machine's devices, ``None`` if they have not been detected; may raise the
            plan's errors.

    Returns:
        What ``use`` returns.

    Raises:
        InvalidPlanError: The plan has errors; those of the settings and of the file with their lines.
    """
    file = file and _without_search(file)
    written = file.values if file else {}
    chosen, devices, left_out = {**written, **flags}, None, list[PlanError]()
    values: Mapping[str, Any] = chosen
    if settings.plan:
        devices = detect().devices
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
            raise InvalidPlanError([*invalid.values(), *_further_errors(plan, invalid)])
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


def _further_errors(plan: Plan, invalid: Container[str]) -> Iterator[PlanError]:
    """What does not fit the machine or the data, as far as it does not depend on invalid fields."""
    if any(name in invalid for name in ("model", "data", "task", "strategy")):
        return
    with suppress(AccelError):
        for error in resolve(plan, detect().devices).with_survey().plan_errors:
            if error.field not in invalid and not refers_to(error, invalid):
                yield error
