"""What is said before anything is served."""

import importlib.util
import signal
import socket
import subprocess

import pytest

from accel_tui.cli import serve, web_server


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.7", False),
        ("a.machine", False),
    ],
)
def test_who_could_reach_it_is_said_unless_only_this_machine_could(run_command, monkeypatch, host, near):
    served = []
    monkeypatch.setattr(
        web_server, "serve_dashboards", lambda host, port, allowed, tell: served.append((host, port, allowed))
    )
    monkeypatch.setattr("getpass.getuser", lambda: "somebody")
    told = run_command(f"serve --host {host} --port 8123 --allow-host a.b --allow-host c")
    assert (told.status, served) == (0, [(host, 8123, ("a.b", "c"))])
    assert serve.is_loopback(host) is near
    if near:
        assert not told.err
    else:
        assert "can start programs as somebody" in told.err
        assert "ssh -L 8123:127.0.0.1:8123" in told.err


def test_what_is_missing_is_said_with_how_to_get_it(run_command, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    told = run_command("serve")
    assert told.status == 2
    assert told.err == ("accel-tui: textual-serve is not installed: pip install 'accel-tui[serve]'\n")


def test_a_port_that_is_taken_is_said_and_no_process_that_ran_before_is_ended(run_command):
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        subprocess.Popen(["sleep", "600"]) as other,
    ):
        port = taken.getsockname()[1]
        told = run_command(f"serve --port {port}")
        other.terminate()
        assert other.wait() == -signal.SIGTERM
    assert told.status == 2
    assert told.err == (
        f"accel-tui: port {port} of 127.0.0.1 is already in use; choose another port, or --port 0 for any free port\n"
    )


@pytest.mark.parametrize("name", ["http://a", "a:80", "", "a b", "*"])
def test_only_names_of_hosts_can_be_allowed(run_command, name):
    told = run_command(f"serve --port 0 --allow-host '{name}'")
    assert told.status == 2
    assert told.err.startswith(f"accel-tui: --allow-host: {name} is not the name of a host")


def test_an_address_of_another_machine_is_said(run_command):
    told = run_command("serve --host 192.0.2.7")  # for documentation alone: RFC 5737
    assert told.status == 2
    assert "192.0.2.7 is not an address of this machine" in told.err
