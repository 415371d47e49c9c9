"""A stand-in for ``ssh``, which runs the command of a host on this machine."""

from pathlib import Path

_PROGRAM = """#!/bin/sh
# Takes the options and the destination as ssh does, and runs the rest here.
while [ "$1" != "--" ]; do shift; done
test ! -e "{cut}" || {{ echo "ssh: connect to host $2 port 22: Network is unreachable" >&2; exit 255; }}
shift 2
exec sh -c "$*"
"""


def write_stand_in(folder: Path) -> tuple[Path, Path]:
    """Write the program; returns it, and the file that keeps it from connecting while it exists."""
    program, cut = folder / "ssh", folder / "cut"
    program.write_text(_PROGRAM.format(cut=cut))
    program.chmod(0o700)
    return program, cut
