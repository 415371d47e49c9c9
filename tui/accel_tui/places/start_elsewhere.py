"""Starts the plan of the form on another machine; all of it blocks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from accel_engine.hosts.runs_there import choose_host, live_runs, start
from accel_engine.places import ANY
from accel_engine.places.placed_runs import check_strategy, cluster_environment, open_place, submit, submit_plan
from accel_engine.plan import Plan
from accel_engine.process.start_run import prepare_run
from accel_tui.places.where import Where


def start_elsewhere(where: Where, plan: Plan, warn: Callable[[str], object], *, queued: bool = False) -> Path | str:
    """Start a plan at a place.

    Args:
        where: The place.
        plan: The plan.
        warn: Called with each warning.
        queued: Whether it waits in the queue of a host.

    Returns:
        The run's directory here; or for a run that is made elsewhere what its place calls it.

    Raises:
        AccelError: The plan does not fit the place, or the place cannot start it.
    """
    name = where.name
    assert name is not None  # noqa: S101 (this machine starts runs in another way)
    if where.is_host:
        host = name.detail
        if host == ANY:
            chosen = choose_host()
            host, queued = chosen.host, queued or live_runs(chosen) > 0
        directory, warnings = start(host, plan.changed(), queued=queued)
        for warning in warnings:
            warn(warning)
        return directory
    place = open_place(name)
    request = replace(where.request, nodes=place.nodes(where.request))
    devices, environment = place.describe(request), cluster_environment(request.nodes or 1)
    check_strategy(plan, request)
    if not place.has_run_here(request):
        return f"{name} has taken {submit_plan(place, request, plan, devices)}"

    def open_run() -> Path:
        return prepare_run(plan, devices, warn, queued=True, environment=environment)

    return submit(place, request, plan, devices, open_run)
