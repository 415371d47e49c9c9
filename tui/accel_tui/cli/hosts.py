"""``accel-tui hosts``: other machines that OpenSSH reaches; and ``accel-tui remote``, which answers on them."""

from typing import Any

import click

from accel_engine.errors import AccelError
from accel_engine.hosts import mirrored_runs
from accel_engine.hosts.host_list import Host, add_host, remove_host
from accel_engine.hosts.reading import HostReading, read_all
from accel_engine.text import printable_line
from accel_engine.words import numbers
from accel_tui.cli.output import json_option, table, write, write_json

EPILOG = """\b
Examples:
  accel-tui hosts add gpu1 --ssh ann@gpu1.example.org
  accel-tui hosts
  accel-tui watch gpu1:last
"""


@click.group(epilog=EPILOG, invoke_without_command=True)
@json_option
@click.pass_context
def hosts(context: click.Context, as_json: bool) -> int:
    """List the hosts, with their devices and what runs there.

    A host is a machine that ssh reaches with your configuration and keys. It needs accel-tui, and nothing running.
    Its runs are listed with yours; commands take them as HOST:RUN, such as gpu1:last.
    """
    if context.invoked_subcommand is not None:
        return 0
    readings = read_all()
    if as_json:
        write_json(*map(_wire, readings))
    elif not readings:
        write("No hosts yet. Add one: accel-tui hosts add NAME --ssh USER@MACHINE")
    else:
        write(table(("HOST", "STATE", "DEVICES", "LIVE", "RUNS"), [_row(reading) for reading in readings]))
        for reading in readings:
            if reading.message:
                write(f"\n{printable_line(reading.message)}")
    return 0 if all(reading.state == "connected" for reading in readings) else 1


@hosts.command(epilog="\b\nExample:\n  accel-tui hosts add gpu1 --ssh ann@gpu1.example.org")
@click.argument("name")
@click.option("--ssh", default="", metavar="TARGET", help="Destination of ssh, e.g. USER@MACHINE.  [default: NAME]")
@click.option("--python", default="", metavar="PATH", help="The Python there that has accel-tui.")
@click.option("--home", default="", metavar="PATH", help="ACCEL_TUI_HOME there.")
def add(name: str, ssh: str, python: str, home: str) -> int:
    """Add a host, or change it, and look whether it answers."""
    add_host(Host(name, ssh, python, home))
    try:
        mirrored_runs.list_runs_of(name)
    except AccelError:
        write(f"{name} is added, but does not answer yet.")
        raise
    write(f"{name} is added.")
    return 0


@hosts.command(epilog="\b\nExample:\n  accel-tui hosts rm gpu1")
@click.argument("name")
def rm(name: str) -> int:
    """Forget a host, and what is mirrored of its runs. Nothing changes there."""
    remove_host(name)
    return 0


@click.command(hidden=True)
@click.argument("home", required=False, default="")
def remote(home: str) -> int:
    """Answer what another machine's accel-tui asks, over standard input and output."""
    from accel_engine.hosts.remote import main  # it does not return

    return main(home)


def _row(reading: HostReading) -> tuple[str, ...]:
    devices = ", ".join(printable_line(device.name) for device in reading.devices)
    live = sum(1 for run in reading.runs if run.status and run.status.live)
    return (reading.host, reading.state, devices, str(live), numbers.count(len(reading.runs)))


def _wire(reading: HostReading) -> dict[str, Any]:
    return {
        "host": reading.host,
        "state": reading.state,
        "message": reading.message,
        "devices": [{"id": device.id, "name": device.name} for device in reading.devices],
        "runs": [run.id for run in reading.runs],
        "queue": [{"run": queued.id, "why": queued.why} for queued in reading.queue],
    }
