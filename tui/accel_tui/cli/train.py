"""``accel-tui train``: trains a model in the foreground or in the background."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from accel_engine.errors import EngineMissingError, UsageError
from accel_engine.places import FORMS, HERE, HOST, PlaceName, PlaceRequest, parse_place
from accel_engine.plan.options import specs_of
from accel_engine.process.warm_engine import WarmEngine
from accel_engine.run_queue.queue_entries import QueueRequest
from accel_engine.user_paths import is_directory, is_named_pipe
from accel_tui.cli.options import Command, takes
from accel_tui.cli.output import print_to_stderr
from accel_tui.cli.plan_options import PlanCommand, given

EPILOG = """\b
Examples:
  accel-tui train
  accel-tui train --model resnet20 --data cifar10 --batch-size 128
  accel-tui train plan.toml --learning-rate 3e-4 --json > steps.jsonl
  accel-tui train plan.toml --queue --after last
  accel-tui train plan.toml --on slurm:gpu --strategy multi-worker --nodes 2

\b
Exit status:
  0  the run finished or was stopped, by Ctrl-C too
  1  it failed or was lost
  2  the plan or the command is wrong
"""

ON_PLACE = click.option(
    "--on",
    "place",
    metavar="PLACE",
    callback=lambda context, option, text: _read_place(context, option, text),
    help=f"Train at a place: a host, any of them, {', '.join(FORMS.values())}.  [default: {HERE}]",
)

_OUTPUTS = (
    click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object per line, with every series of each step."
    ),
    click.option("--plain", is_flag=True, help="Print log lines, on a terminal too."),
    click.option("--detach", is_flag=True, help="Print the run's id and return; train in the background."),
    click.option(
        "--queue", "queued", is_flag=True, help="Print the run's id and return; it trains when its turn comes."
    ),
    takes(QueueRequest, "request", if_given=True),
    ON_PLACE,
    click.option(
        "--hosts",
        metavar="HOST,...",
        help="Train on several machines over SSH, which share the directory of runs; same as --on hosts:HOST,...",
    ),
    takes(PlaceRequest, "place_request", if_given=True),
)


def _is_on_host(run: str) -> bool:
    """Whether a run is mirrored from a host."""
    from accel_engine.run.directory.run_paths import host_of_run, hosts_directory  # slow to import

    if not is_directory(hosts_directory()):
        return False
    from accel_engine.run import find_run

    return bool(host_of_run(find_run(run)))


def _read_place(context: click.Context, option: click.Parameter, text: str | None) -> PlaceName | None:
    """The place that --on names; ``None`` for this machine."""
    try:
        return parse_place(text or HERE)
    except UsageError as error:
        raise click.BadParameter(str(error), context, option) from error


def output_options(command: Command) -> Command:
    """Add --json, --plain, --detach, --queue, --on and the options of queue and places to a command."""
    for option in reversed(_OUTPUTS):
        command = option(command)
    return command


@click.command(cls=PlanCommand, epilog=EPILOG)
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--resume", metavar="RUN", help="Same as accel-tui continue RUN.")
@click.option("--from", "start_from", metavar="RUN", help="Start from a run's weights; same as --initial-weights RUN.")
@output_options
def train(plan_file: Path | None, resume: str | None, start_from: str | None, **flags: Any) -> int:
    """Train a model and show its progress.

    The plan is read from PLAN.toml (or .json); options override it. Without a file, your settings
    and the defaults apply.

    Ctrl-C stops after the current steps and writes a checkpoint; a second Ctrl-C stops at once.
    Training runs in a separate process: it keeps running when the terminal closes, and
    'accel-tui watch last' shows it again. With --queue it waits until what it needs is free; see 'accel-tui queue'.
    With --on, a host or a cluster trains it, and this shows it as if it were here; Ctrl-C stops it. The
    files that the plan names travel to a host, but large data, which is named by its path there: --data there:/PATH.
    """
    outputs = take_outputs(flags)
    if start_from is not None:
        if flags.get("initial_weights") is not None:
            raise click.UsageError("--from and --initial-weights exclude each other")
        flags["initial_weights"] = start_from
    if resume is not None and plan_file is not None:
        raise click.UsageError("--resume uses the run's own plan: leave PLAN.toml out")
    if plan_file and is_named_pipe(plan_file):
        print_to_stderr(f"waiting for a plan from the pipe {plan_file}")
    return train_or_queue(resume, plan_file, given(flags), **outputs)


def take_outputs(flags: dict[str, Any]) -> dict[str, Any]:
    """Remove what :func:`output_options` adds from a command's flags.

    Returns:
        The arguments of :func:`train_or_queue` of the same names.

    Raises:
        click.UsageError: Two exclude each other, or there are options of the queue without --queue.
    """
    queued, request = flags.pop("queued"), flags.pop("request")
    place, asked, hosts = flags.pop("place"), flags.pop("place_request"), flags.pop("hosts")
    if hosts is not None:
        if place is not None:
            raise click.UsageError("--on and --hosts exclude each other")
        place = PlaceName("hosts", hosts)
    shown = {name: flags.pop(name) for name in ("as_json", "plain", "detach")}
    if request and not queued:
        raise click.UsageError("--priority, --after and --devices-each go with --queue")
    refuse_two_outputs(*shown.values(), queued)
    if queued and place and place.kind != HOST:
        raise click.UsageError(f"--queue is the queue of this machine: {place} has its own")
    return {
        **shown,
        "request": QueueRequest(**request) if queued else None,
        "place": asked_of(place, asked),
    }


def asked_of(place: PlaceName | None, asked: Mapping[str, Any]) -> tuple[PlaceName, PlaceRequest] | None:
    """A place with what is asked of it; ``None`` for this machine.

    Args:
        place: The place of --on.
        asked: The fields of :class:`PlaceRequest` that are given.

    Raises:
        click.UsageError: Something is asked of this machine.
    """
    if asked and place is None:
        specs = specs_of(PlaceRequest)
        named = ", ".join(specs[name].flag(name) for name in asked)
        here = "; on this machine, --devices gpu:0,gpu:1" if "gpus" in asked else ""
        raise click.UsageError(f"{named}: give a place with --on{here}")
    return (place, PlaceRequest(**asked)) if place else None


def train_or_queue(
    run: str | None,
    plan_file: Path | None,
    fields: Mapping[str, Any],
    *,
    request: QueueRequest | None,
    place: tuple[PlaceName, PlaceRequest] | None = None,
    as_json: bool,
    plain: bool,
    detach: bool,
) -> int:
    """Continue a run, or train a new one; now, or when its turn in the queue comes.

    Args:
        run: The run to continue; ``None`` for a new one.
        plan_file: The plan of a new run; ``None`` for the settings alone.
        fields: Plan fields that are given as options.
        request: Asked of the queue; ``None`` to train now. ``after`` may have names of runs.
        place: Where it is trained, and what is asked there; ``None`` for here.
        as_json: Whether to print JSON lines.
        plain: Whether to print log lines on a terminal too.
        detach: Whether to train in the background.

    Returns:
        The exit status.
    """
    if (place is not None and place[0].kind == HOST) or (run and _is_on_host(run)):
        from accel_tui.cli import host_run  # seldom needed

        shown = {"as_json": as_json, "plain": plain, "detach": detach}
        return host_run.train_on_host(place, run, plan_file, fields, request=request, **shown)
    if place is not None:
        from accel_tui.cli import place_run  # seldom needed

        return place_run.train_at_place(*place, run, plan_file, fields, as_json=as_json, plain=plain, detach=detach)
    ahead: AbstractContextManager[WarmEngine | None] = warm_engine() if request is None else nullcontext()
    with ahead as engine:
        from accel_tui.cli import training_run  # slow to import: the engine starts before

        if request is not None:
            return training_run.queue_run(run, plan_file, fields, request)
        directory = training_run.open_run(run, plan_file, fields)
        return training_run.train_run(directory, engine, as_json=as_json, plain=plain, detach=detach)


@contextmanager
def warm_engine() -> Iterator[WarmEngine | None]:
    """Start an engine, which imports TensorFlow meanwhile; it is killed at the end of the block unless it has a run.

    ``None`` if no usable TensorFlow is installed, which preparing a run reports after the errors of its plan.
    """
    try:
        engine = WarmEngine()
    except EngineMissingError:
        yield None
        return
    with closing(engine):
        yield engine


def refuse_two_outputs(*chosen: bool) -> None:
    """Raise a usage error when more than one of --json, --plain, --detach and --queue, in this order, is given."""
    if sum(chosen) > 1:
        names = ("--json", "--plain", "--detach", "--queue")[: len(chosen)]
        raise click.UsageError(f"{', '.join(names[:-1])} and {names[-1]} exclude each other")
