"""Checks the Python interpreter, which runs the engines, too."""

import platform
import struct
import sys
import sysconfig
from dataclasses import dataclass

from accel_engine.doctor.check import CheckFinding, failed, passed, warned

OLDEST, NEWEST = (3, 11), (3, 13)
"""The range of Python versions with TensorFlow packages."""

_FIX = f"create a virtual environment with 64-bit CPython {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter."""

    version: tuple[int, int, int]
    """E.g. ``(3, 11, 9)``."""
    implementation: str = "CPython"
    """``CPython``, ``PyPy``."""
    bits: int = 64
    """32 or 64."""
    free_threaded: bool = False
    """Whether it is a build without the GIL."""
    virtual: bool = True
    """Whether it is in a virtual environment."""
    system: str = "Linux x86_64"
    """Operating system and processor: ``Linux x86_64``."""
    musl: bool = False
    """Whether the C library is musl, as on Alpine Linux."""

    @classmethod
    def here(cls) -> "Interpreter":
        """The interpreter of this process."""
        return cls(
            version=sys.version_info[:3],
            implementation=platform.python_implementation(),
            bits=struct.calcsize("P") * 8,
            free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
            virtual=sys.prefix != sys.base_prefix,
            system=f"{platform.system()} {platform.machine()}",
            musl="musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""),
        )


def check_python(python: Interpreter, *, in_colab: bool = False) -> CheckFinding:
    """Check whether TensorFlow has packages for this interpreter.

    Args:
        python: The interpreter.
        in_colab: Whether it is of a runtime of Google Colab, which is one user's own.
    """
    version = ".".join(map(str, python.version))
    found = f"{python.implementation} {version} on {python.system}"
    if python.implementation != "CPython" or python.bits != 64 or python.free_threaded:
        kind = "free-threaded " if python.free_threaded else ""
        return failed(f"{kind}{python.bits}-bit {found}", "TensorFlow needs standard 64-bit CPython", _FIX)
    if not OLDEST <= python.version[:2] <= NEWEST:
        return failed(found, "TensorFlow does not support this Python version", _FIX)
    if python.musl:
        return failed(
            f"{found}, with musl",
            "TensorFlow needs the GNU C library, which Alpine Linux does not have",
            "use a Debian or Ubuntu image, e.g. python:3.12-slim",
        )
    if in_colab:
        return passed(f"{found}, of this runtime of Colab")
    if not python.virtual:
        return warned(
            f"{found}, not in a virtual environment",
            "other programs may replace TensorFlow's packages",
            "install accel-tui in its own virtual environment, or with pipx or uv tool",
        )
    return passed(f"{found}, in a virtual environment")
