"""A network namespace for one process, where it can reach itself and nobody can reach it (Linux).

``python network_namespace.py COMMAND ...`` runs a command there; without a command, it tries whether that is allowed.
:func:`enter` works only in a process with one thread, and many libraries start threads when they are imported.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from functools import cache

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _UP = 0x8914, 0x1
_TIMEOUT = 10.0


def why_not() -> str:
    """Why this user may not enter a network namespace here; empty if it is allowed.

    The first call starts a process, which may take as long as :data:`_TIMEOUT`: never call it on an event loop.
    """
    if sys.platform != "linux":
        return "only Linux has network namespaces"
    try:
        return refusal()
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"a network namespace cannot be tried: {error}"


@cache
def refusal() -> str:
    """Why the system does not allow a network namespace; empty if it does.

    Raises:
        OSError: A process to try it cannot be started.
        subprocess.TimeoutExpired: Trying it takes too long. Errors are not cached: the next call tries again.
    """
    tried = subprocess.run(isolated_command(), capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    return f"this system does not allow network namespaces ({tried.stderr.strip()})" if tried.returncode else ""


def isolated_command(*arguments: str) -> list[str]:
    """The command line that runs a command in its own network namespace."""
    return [sys.executable, "-I", "-S", __file__, *arguments]


def enter() -> None:
    """Enter a new network namespace, with a loopback interface only.

    Users other than root need a new user namespace for it, in which they and their group keep their ids. Root would
    lose access to the files of others there, and does without.

    Raises:
        OSError: The system does not allow it, or this process has several threads.
    """
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        _unshare(_NEW_NETWORK)
    else:
        _unshare(_NEW_USER | _NEW_NETWORK)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


def _unshare(flags: int) -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    try:
        enter()
    except OSError as problem:
        sys.exit(problem.strerror)
    if sys.argv[1:]:
        os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 (the command is an engine's)
