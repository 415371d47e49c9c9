"""``accel-tui cluster``: what to run on each of several machines that train together, or running this one's part."""

import os

import click

from accel_engine.cluster_spec import ClusterSpec
from accel_engine.errors import UsageError
from accel_engine.plan import Plan
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
  TF_CONFIG  tells a process who all of them are: each printed command sets
             it, and where a scheduler does, train takes it from there
"""


def _addresses(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Read HOST:PORT,HOST:PORT,... ."""
    addresses = tuple((text or "").replace(",", " ").split())
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise click.BadParameter(f"{address!r} must be HOST:PORT", context, option)
    return addresses


@click.command(
    epilog=EPILOG,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option(
    "--workers",
    required=True,
    callback=_addresses,
    metavar="HOST:PORT,...",
    help="Where each worker listens, the chief first; a worker is a process with the devices of its host.",
)
@click.option(
    "--servers",
    callback=_addresses,
    metavar="HOST:PORT,...",
    help="Where each parameter server listens, which keep the weights; workers then take steps for a coordinator.",
)
@click.option("--coordinator", callback=_addresses, metavar="HOST:PORT", help="Where their coordinator listens.")
@click.option(
    "--here",
    metavar="N",
    help="Run worker N's part here, or that of the coordinator or of ps0, ps1, ...; without it, print all.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PLAN.toml] [OPTIONS OF TRAIN]")
def cluster(
    workers: tuple[str, ...],
    servers: tuple[str, ...],
    coordinator: tuple[str, ...],
    here: str | None,
    arguments: tuple[str, ...],
) -> int:
    """Train on several machines: print the command for each, or run one machine's part.

    Every machine needs this program, the same plan and the same data, and must reach the others at
    their ports. The chief (worker 0, or the coordinator) writes the run; look at it there.
    """
    if bool(servers) != (len(coordinator) == 1):
        raise click.UsageError("--servers needs one --coordinator, and it needs them")
    if len(workers) < 2 and not servers:
        raise click.UsageError("--workers needs two or more; one machine alone needs no cluster: accel-tui train")
    everyone = (*coordinator, *workers, *servers)
    if len(set(everyone)) < len(everyone):
        raise click.UsageError("an address is named twice; processes of one host need ports of their own")
    strategy = "parameter-server" if servers else "multi-worker"
    words = ["--strategy", strategy, *arguments]
    _check(words, strategy)
    parts = ClusterSpec(workers, servers, coordinator="".join(coordinator)).processes
    places = {"coordinator" if part.role == "chief" else part.run_name: part for part in parts}
    if here is not None:
        if here not in places:
            raise click.UsageError(f"--here must be one of {', '.join(places)}")
        os.environ["TF_CONFIG"] = places[here].to_tf_config()
        status: int = train.main(words, prog_name="accel-tui train", standalone_mode=False)
        return status
    for part, address in zip(parts, everyone, strict=True):
        leads = ", the chief" * (part.chief and not servers)
        write(f"# {part.name}{leads}, on {address.rpartition(':')[0]}")
        config = shell_command([part.to_tf_config()])
        write(f"TF_CONFIG={config} {shell_command(['accel-tui', 'train', *words])}\n")
    return 0


def _check(words: list[str], strategy: str) -> None:
    """Refuse a plan with a mistake here rather than on every machine."""
    flags = train.make_context("train", list(words)).params
    if flags["strategy"] != strategy:
        raise UsageError(f"--strategy {flags['strategy']} is not for these processes, which train by {strategy}")
    if flags.get("plan_file") is None and flags.get("resume") is None:
        given = {name: value for name, value in flags.items() if name in Plan.__dataclass_fields__}
        plan = Plan.from_mapping({name: value for name, value in given.items() if value is not None})
        if plan.local_workers:
            raise UsageError("--local-workers starts workers on one machine, and --workers names those of several")
