"""``accel-tui hosts``: other machines that OpenSSH reaches; and ``accel-tui remote``, which answers on them."""

import sys
from dataclasses import replace
from typing import Any

import click

from accel_engine.doctor.check import CheckResult
from accel_engine.errors import AccelError
from accel_engine.hosts import mirrored_runs
from accel_engine.hosts.host_list import Host, add_host, find_host, read_hosts, remove_host
from accel_engine.hosts.installation import EXTRAS
from accel_engine.hosts.installation import install as install_on
from accel_engine.hosts.reading import HostReading, check_host, read_all
from accel_engine.text import printable, printable_line
from accel_engine.words import numbers
from accel_tui.cli.doctor import TextReports
from accel_tui.cli.output import json_option, print_to_stderr, table, write, write_json
from accel_tui.run_list.host_rows import host_check_lines

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
@click.option("--ssh", metavar="TARGET", help="Destination of ssh, e.g. USER@MACHINE.  [default: NAME]")
@click.option("--python", metavar="PATH", help="The Python there that has accel-tui.")
@click.option("--home", metavar="PATH", help="ACCEL_TUI_HOME there.")
def add(name: str, **given: str | None) -> int:
    """Add a host, or change what is given of it, and look whether it answers."""
    known = next((host for host in read_hosts() if host.name == name), None)
    add_host(replace(known or Host(name), **{option: text for option, text in given.items() if text is not None}))
    done = f"{name} is {'changed' if known else 'added'}"
    try:
        mirrored_runs.list_runs_of(name)
    except AccelError:
        write(f"{done}, but does not answer yet.")
        raise
    write(f"{done}.")
    return 0


@hosts.command(epilog="\b\nExample:\n  accel-tui hosts rm gpu1")
@click.argument("name")
def rm(name: str) -> int:
    """Forget a host, and what is mirrored of its runs. Nothing changes there."""
    remove_host(name)
    return 0


@hosts.command(epilog="\b\nExample:\n  accel-tui hosts check gpu1")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def check(names: tuple[str, ...]) -> int:
    """Check hosts, all by default: the connection, versions, clocks, and the doctor there."""
    chosen = [find_host(name) for name in names] if names else read_hosts()
    return max((_check(host) for host in chosen), default=0)


def _check(host: Host) -> int:
    """Check a host; returns the status for the shell."""
    try:
        found = check_host(host.name)
    except AccelError as error:
        print_to_stderr(str(error))
        return 1
    write(printable("\n".join(host_check_lines(host.name, found))) + "\n")
    shown = list(TextReports([report.check for report in found.reports]).all(iter(found.reports)))
    return int(any(report.finding.verdict is CheckResult.FAIL for report in shown))


@hosts.command(
    epilog="\b\nExamples:\n  accel-tui hosts install gpu1\n  accel-tui hosts install gpu1 --from accel_tui.whl"
)
@click.argument("name")
@click.option(
    "--from", "source", default="", metavar="SOURCE", help="A wheel here, or what pip takes.  [default: this version]"
)
@click.option("--extra", type=click.Choice(EXTRAS), default="auto", show_default=True, help="The build of TensorFlow.")
@click.option(
    "--with-python",
    "python",
    default="python3",
    show_default=True,
    metavar="PATH",
    help="The Python there, 3.11 or later.",
)
def install(name: str, source: str, extra: str, python: str) -> int:
    """Make an environment with accel-tui on a host, and use it from now on."""
    may_ask = sys.stdin is not None and sys.stdin.isatty()
    host = install_on(find_host(name), source, extra=extra, python=python, tell=write, may_ask=may_ask)
    write(f"{name} answers with {host.python}")
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
