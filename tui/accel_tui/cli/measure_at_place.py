"""Measures a plan on a machine of a place, such as a cluster: the same command runs there, and prints here."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from accel_engine.devices.device_types import Device
from accel_engine.files import private_directory
from accel_engine.places import HOST, PlaceName, PlaceRequest, placed_runs
from accel_engine.places.place import PlacedJob
from accel_engine.plan import Plan
from accel_engine.plan.options import command_words
from accel_engine.plan.plan_file import read_plan_file
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run.directory.run_paths import home
from accel_tui.cli.chosen_plan import with_chosen_plan
from accel_tui.cli.host_run import chosen_host, run_on_host
from accel_tui.cli.signals import interruptible
from accel_tui.settings.user_settings import load_settings


def measure_at_place(
    where: tuple[PlaceName, PlaceRequest],
    command: Sequence[str],
    plan_file: Path | None,
    fields: dict[str, Any],
    options: object,
    check: Callable[[ResolvedPlan], object],
    *,
    as_json: bool,
) -> int:
    """Run a command that measures a plan on a machine of a place, or on a host.

    A place reads the plan in the shared directory; to a host it travels with its files.

    Args:
        where: The place, and what is asked of it.
        command: The words of the command, without the plan and options.
        plan_file: The plan; ``None`` for the settings alone.
        fields: Plan fields that are given as options.
        options: The command's other options, a dataclass.
        check: Checks whether the plan can be measured.
        as_json: Whether it prints JSON.

    Returns:
        The exit status of the command there.

    Raises:
        AccelError: The plan does not fit the place, or the place runs no commands.
    """
    name, request = where
    words = [*command_words(options), *(["--json"] if as_json else [])]
    if name.kind == HOST:
        request.check_is_empty(name)
        file = read_plan_file(plan_file) if plan_file else None
        return run_on_host(chosen_host(name.detail), [*command, *words], file, fields)
    if request.nodes not in (None, 1):
        raise click.UsageError("one machine is measured: leave out --nodes")
    place, request = placed_runs.open_place(name), replace(request, nodes=1)

    def checked(plan: Plan, devices: Sequence[Device]) -> ResolvedPlan:
        resolved = placed_runs.check_at_place(place, request, plan, devices)
        check(resolved)
        return resolved

    file = read_plan_file(plan_file) if plan_file else None
    resolved = with_chosen_plan(load_settings(), file, fields, checked, place.describe(request))
    private_directory(home())
    with interruptible() as interrupted, TemporaryDirectory(prefix=".measured-", dir=home().absolute()) as folder:
        path = Path(folder, "plan.json")
        path.write_text(resolved.plan.absolute().to_json(), "utf-8")
        return place.run(PlacedJob(resolved, request, Path(folder)), [*command, str(path), *words], interrupted.is_set)
