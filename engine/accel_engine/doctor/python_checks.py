"""The Python that runs this, which is the one that engines run in."""

import platform
import struct
import sys
import sysconfig
from dataclasses import dataclass
from functools import partial

from accel_engine.doctor.check import Check, Finding, failed, passed, warned
from accel_engine.doctor.machine import Machine

OLDEST, NEWEST = (3, 11), (3, 13)
"""The versions for which TensorFlow is published and this program is tested."""

_RIGHT = f"make a virtual environment with 64-bit CPython {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python.

    Attributes:
        version: As ``(3, 11, 9)``.
        implementation: ``CPython``, ``PyPy``.
        bits: Of an address: 32 or 64.
        free_threaded: Whether it was built without the global lock.
        virtual: Whether it is that of a virtual environment.
        system: Of the machine, with its processor: ``Linux x86_64``.
        musl: Whether the C library is musl, as on Alpine.
    """

    version: tuple[int, int, int]
    implementation: str = "CPython"
    bits: int = 64
    free_threaded: bool = False
    virtual: bool = True
    system: str = "Linux x86_64"
    musl: bool = False

    @classmethod
    def here(cls) -> "Interpreter":
        """The one that runs this."""
        return cls(
            version=sys.version_info[:3],
            implementation=platform.python_implementation(),
            bits=struct.calcsize("P") * 8,
            free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
            virtual=sys.prefix != sys.base_prefix,
            system=f"{platform.system()} {platform.machine()}",
            musl="musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""),
        )


def checks(machine: Machine) -> tuple[Check, ...]:  # noqa: ARG001 (every subject is asked in the same way)
    """The check of this subject."""
    return (Check("python", partial(look, Interpreter.here())),)


def look(python: Interpreter) -> Finding:
    """Whether TensorFlow is published for this Python."""
    version = ".".join(map(str, python.version))
    found = f"{python.implementation} {version} on {python.system}"
    if python.implementation != "CPython" or python.bits != 64 or python.free_threaded:
        kind = "free-threaded " if python.free_threaded else ""
        return failed(f"{kind}{python.bits}-bit {found}", "TensorFlow is published for plain 64-bit CPython", _RIGHT)
    if not OLDEST <= python.version[:2] <= NEWEST:
        return failed(found, "TensorFlow is not published for this version of Python", _RIGHT)
    if python.musl:
        return failed(
            f"{found}, with musl",
            "TensorFlow is published for the GNU C library, which Alpine Linux has not",
            "use a Debian or Ubuntu image, such as python:3.12-slim",
        )
    if not python.virtual:
        return warned(
            f"{found}, not in a virtual environment",
            "other programs' packages are installed in the same place, and may replace TensorFlow's",
            "install accel-tui in a virtual environment of its own, or with pipx or uv tool",
        )
    return passed(f"{found}, in a virtual environment")
