"""Monitoring of peers, with plain sockets in place of TensorFlow's servers."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import psutil
import pytest

from accel_engine.errors import AccelError
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.distributed import peers
from accel_engine.training.distributed.peers import PeerMonitor, ReadinessListener

Wait = Callable[..., None]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(peers, "REPLY_SECONDS", 0.01)  # sockets that only listen say none


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def watch(listener: socket.socket, said: list[str], **limits: float) -> PeerMonitor:
    cluster = ClusterSpec(("127.0.0.1:1", f"127.0.0.1:{listener.getsockname()[1]}"))
    return PeerMonitor(cluster, said.append, **limits)


def test_missing_peers_are_reported_until_all_have_started(wait_until: Wait) -> None:
    said: list[str] = []
    with socket.socket() as later:
        later.bind(("127.0.0.1", 0))
        watching = watch(later, said, join_seconds=60.0)
        address = f"127.0.0.1:{later.getsockname()[1]}"
        wait_until(lambda: said == [f"worker 1 ({address})"], "a word of who is missing")
        later.listen()
        wait_until(lambda: said[1:] == [""], "a word that all are there")
        watching.stop()
    assert watching.problem == ""


def test_a_peer_that_never_starts_is_a_problem(listener: socket.socket) -> None:
    listener.close()
    cluster = ClusterSpec(("127.0.0.1:1", "127.0.0.1:2"))
    watching = PeerMonitor(cluster, lambda _: None, join_seconds=0.0)
    assert watching.wait_for_problem() == "worker 1 (127.0.0.1:2) did not start within 0 s"


def test_a_lost_peer_is_a_problem(listener: socket.socket, wait_until: Wait) -> None:
    said: list[str] = []
    watching = watch(listener, said, lost_seconds=0.05)
    wait_until(lambda: said == [""], "a word that all are there")
    listener.close()
    wait_until(lambda: watching.problem, "a problem")
    assert "was lost" in watching.problem
    assert watching.wait_for_problem() == watching.problem


def test_a_hanging_peer_is_a_problem(listener: socket.socket) -> None:
    watching = watch(listener, [], unresponsive_seconds=0.2)
    assert watching.wait_for_problem().endswith("hangs: it accepts connections but has not answered for 0.2 s")


def test_a_peer_that_answers_does_not_hang(
    listener: socket.socket, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "REPLY_SECONDS", 60.0)
    greeted: list[object] = []

    def greet() -> None:
        with contextlib.suppress(OSError):
            while True:
                visitor, address = listener.accept()
                with visitor:
                    visitor.send(b"hello")
                greeted.append(address)

    host = threading.Thread(target=greet)
    host.start()
    watching = watch(listener, [], unresponsive_seconds=0.0)
    wait_until(lambda: len(greeted) > 3 or watching.problem, "some greetings")
    problem = watching.problem  # later, a greeting that is awaited no longer comes
    watching.stop()
    listener.shutdown(socket.SHUT_RDWR)
    host.join()
    assert not problem


def test_an_unknown_host_counts_as_not_started() -> None:
    cluster = ClusterSpec(("127.0.0.1:1", "no-such-host.invalid:2"))
    watching = PeerMonitor(cluster, lambda _: None, join_seconds=0.0)
    assert "no-such-host.invalid:2" in watching.wait_for_problem()


def test_a_coordinator_continues_while_one_worker_is_reachable(wait_until: Wait) -> None:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    *workers, server = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    cluster = ClusterSpec(tuple(workers), (server,), role="chief", coordinator="127.0.0.1:1")
    lost: list[str] = []
    watching = PeerMonitor(cluster, lambda _: None, lost.append, lost_seconds=0.05)
    watching.wait_for_all()
    assert watching.all_joined
    sockets[1].close()
    wait_until(lambda: lost, "a word of who is gone")
    assert lost[0].startswith(f"worker 1 ({workers[1]}) was lost")
    assert lost[0].endswith("; training continues with worker 0")
    assert not watching.problem
    sockets[0].close()
    assert watching.wait_for_problem().startswith(f"worker 0 ({workers[0]}) was lost")
    assert len(lost) == 1
    sockets[2].close()


def test_a_coordinator_cannot_continue_without_a_parameter_server(listener: socket.socket) -> None:
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    with socket.create_server(("127.0.0.1", 0)) as worker:
        there = f"127.0.0.1:{worker.getsockname()[1]}"
        cluster = ClusterSpec((there,), (address,), role="chief", coordinator="127.0.0.1:1")
        watching = PeerMonitor(cluster, lambda _: None, lost_seconds=0.05)
        watching.wait_for_all()
        listener.close()
        assert watching.wait_for_problem().startswith(f"parameter server 0 ({address}) was lost")


def test_a_listening_worker_counts_as_started(address: str) -> None:
    watch = PeerMonitor(ClusterSpec(("127.0.0.1:1", address)), lambda _: None)
    with ReadinessListener(address):
        watch.wait_for_all()
    watch.stop()
    assert watch.problem == ""


def test_the_port_is_free_after_closing(address: str) -> None:
    host, _, port = address.partition(":")
    with ReadinessListener(address), socket.create_connection((host, int(port))) as visitor:
        assert visitor.recv(1) == b"\0"
    with ReadinessListener(address):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_workers_of_this_machine_are_reached_from_this_machine_only(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host.strip("[]"), 0), family=family) as free:
            port = free.getsockname()[1]
    except OSError as error:
        pytest.skip(f"no {host}: {error}")
    with ReadinessListener(f"{host}:{port}"):
        listening = [each for each in psutil.Process().net_connections() if each.laddr and each.laddr[1] == port]
        assert [each.laddr[0] for each in listening] == [host.strip("[]")]
    with ReadinessListener(f"a.machine:{port}"):
        listening = [each for each in psutil.Process().net_connections() if each.laddr and each.laddr[1] == port]
        assert listening[0].laddr[0] in ("::", "0.0.0.0")


def test_a_port_in_use_raises() -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AccelError, match=f"cannot listen on port {port}, .*in use"):
            ReadinessListener(f"127.0.0.1:{port}")
