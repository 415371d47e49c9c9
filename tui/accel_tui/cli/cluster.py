"""``accel-tui cluster``: prints the command for each machine of a cluster, or runs this machine's."""

import os

import click

from accel_engine.errors import UsageError
from accel_engine.plan import Plan
from accel_engine.strategies.cluster_spec import ClusterSpec, is_address
from accel_engine.text import shell_command
from accel_tui.cli.output import write
from accel_tui.cli.train import train

EPILOG = """\b
Examples:
  accel-tui cluster --workers gpu1:12345,gpu2:12345 --model resnet20
  accel-tui cluster --workers gpu1:12345,gpu2:12345 --here 1 plan.toml
  accel-tui cluster --coordinator a:7001 --servers a:7002 --workers b:7001

\b
Environment:
  TF_CONFIG  the addresses and the task of a process; each printed command
             sets it, and train uses the one that a scheduler sets
"""


def _addresses(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Parse ``HOST:PORT,HOST:PORT,...``."""
    addresses = tuple((text or "").replace(",", " ").split())
    for address in addresses:
        if not is_address(address):
            raise click.BadParameter(f"{address!r} must be HOST:PORT", context, option)
    return addresses


@click.command(epilog=EPILOG, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--workers",
    required=True,
    callback=_addresses,
    metavar="HOST:PORT,...",
    help="Address of each worker, the chief first; a worker is one process with the devices of its host.",
)
@click.option(
    "--servers",
    callback=_addresses,
    metavar="HOST:PORT,...",
    help="Address of each parameter server; requires --coordinator.",
)
@click.option("--coordinator", callback=_addresses, metavar="HOST:PORT", help="Address of the coordinator.")
@click.option(
    "--here",
    metavar="N",
    help="Run worker N on this machine, or coordinator, ps0, ps1, ...; without it, print all commands.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PLAN.toml] [TRAIN OPTIONS]")
def cluster(
    workers: tuple[str, ...],
    servers: tuple[str, ...],
    coordinator: tuple[str, ...],
    here: str | None,
    arguments: tuple[str, ...],
) -> int:
    """Train on several machines: print the command for each, or run one of them.

    Every machine needs accel-tui, the same plan and the same data, and a connection to the ports of
    the others. The chief (worker 0, or the coordinator) writes the run; view it there.
    """
    if bool(servers) != (len(coordinator) == 1):
        raise click.UsageError("--servers and --coordinator require each other")
    if len(workers) < 2 and not servers:
        raise click.UsageError("--workers requires at least two addresses; on one machine, use accel-tui train")
    addresses = (*coordinator, *workers, *servers)
    if len(set(addresses)) < len(addresses):
        raise click.UsageError("duplicate address; processes on one host need different ports")
    strategy = "parameter-server" if servers else "multi-worker"
    train_arguments = ["--strategy", strategy, *arguments]
    _check(train_arguments, strategy)
    processes = ClusterSpec(workers, servers, coordinator="".join(coordinator)).processes
    places = {"coordinator" if part.role == "chief" else part.run_directory_name: part for part in processes}
    if here is not None:
        if here not in places:
            raise click.UsageError(f"--here must be one of {', '.join(places)}")
        os.environ["TF_CONFIG"] = places[here].to_tf_config()
        return train.main(train_arguments, prog_name="accel-tui train", standalone_mode=False)
    for part, address in zip(processes, addresses, strict=True):
        chief = ", the chief" * (part.chief and not servers)
        write(f"# {part.name}{chief}, on {address.rpartition(':')[0]}")
        config = shell_command([part.to_tf_config()])
        write(f"TF_CONFIG={config} {shell_command(['accel-tui', 'train', *train_arguments])}\n")
    return 0


def _check(arguments: list[str], strategy: str) -> None:
    """Raise the errors of a plan here rather than on every machine."""
    flags = train.make_context("train", list(arguments)).params
    if flags["strategy"] != strategy:
        raise UsageError(f"--strategy {flags['strategy']} does not match these processes, which use {strategy}")
    if flags.get("plan_file") is None and flags.get("resume") is None:
        given = {name: value for name, value in flags.items() if name in Plan.__dataclass_fields__}
        plan = Plan.from_mapping({name: value for name, value in given.items() if value is not None})
        if plan.local_workers:
            raise UsageError("--local-workers starts workers on one machine; it excludes --workers")
