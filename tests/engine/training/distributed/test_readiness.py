"""The listener that answers peers before TensorFlow's server starts."""

import socket

import psutil
import pytest

from accel_engine.errors import AccelError
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.distributed.peers import PeerMonitor
from accel_engine.training.distributed.readiness import ReadinessListener


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
