"""A network of a process's own: what is in it, who may have one, and who is refused."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from accel_engine import network_namespace

LOOK = """
import os, socket
print(*sorted(name for _, name in socket.if_nameindex() if name == "lo" or not name[-1].isdigit()))
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname(), 5).close()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anywhere:
    try:
        anywhere.connect(("192.0.2.1", 9))
    except OSError as error:
        print(error.strerror)
print(os.getuid(), os.getgid())
print(os.stat("/proc/self").st_uid)
"""

needs_namespaces = pytest.mark.skipif(bool(network_namespace.why_not()), reason=network_namespace.why_not())


def drop_root() -> None:
    """Become another user, without the rights of root."""
    os.setgroups([])
    os.setgid(12345)
    os.setuid(12345)


def run_alone(become: Callable[[], None] | None = None) -> "subprocess.CompletedProcess[str]":
    python = sys.executable if become is None else "/usr/bin/python3"
    command = [python, "-I", "-S", "-", python, "-I", "-S", "-c", LOOK]
    with open(network_namespace.__file__) as module:  # the other user may not read it
        return subprocess.run(
            command, stdin=module, capture_output=True, text=True, check=False, preexec_fn=become, cwd="/"
        )


@needs_namespaces
def test_only_itself_can_be_reached_and_users_stay_who_they_are() -> None:
    finished = run_alone()
    assert finished.stderr == ""
    assert finished.stdout.splitlines() == [
        "lo",
        "Network is unreachable",
        f"{os.getuid()} {os.getgid()}",
        str(os.getuid()),
    ]


@needs_namespaces
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="no Python that other users can run")
def test_another_user_than_root_can_too_where_the_system_allows_it() -> None:
    finished = run_alone(drop_root)
    if finished.returncode:
        pytest.skip(f"other users may not: {finished.stderr.strip()}")
    assert finished.stdout.splitlines() == ["lo", "Network is unreachable", "12345 12345", "12345"]


def test_a_refusal_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = "import sys; sys.exit('Operation not permitted')"
    monkeypatch.setattr(network_namespace, "isolated_command", lambda: [sys.executable, "-I", "-S", "-c", refused])
    network_namespace.refusal.cache_clear()
    assert network_namespace.why_not() == "this system does not allow network namespaces (Operation not permitted)"
    monkeypatch.setattr(network_namespace.sys, "platform", "darwin")
    assert network_namespace.why_not() == "only Linux has network namespaces"
    network_namespace.refusal.cache_clear()


def test_what_could_not_be_tried_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    network_namespace.refusal.cache_clear()
    monkeypatch.setattr(network_namespace, "isolated_command", lambda: ["/no/such/program"])
    assert "cannot be tried" in network_namespace.why_not()
    monkeypatch.setattr(network_namespace, "isolated_command", lambda: [sys.executable, "-I", "-S", "-c", ""])
    assert not network_namespace.why_not()
    network_namespace.refusal.cache_clear()


def test_a_process_with_several_threads_is_refused_rather_than_half_isolated() -> None:
    script = (
        "import threading, runpy, sys; threading.Thread(target=threading.Event().wait, daemon=True).start();"
        f"module = runpy.run_path({network_namespace.__file__!r}); import os; os.geteuid = lambda: 1\n"
        "try: module['enter']()\nexcept OSError: sys.exit(3)"
    )
    assert subprocess.run([sys.executable, "-I", "-S", "-c", script], check=False).returncode == 3
