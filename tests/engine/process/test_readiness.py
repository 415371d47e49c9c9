"""Being there before TensorFlow is."""

import socket

import pytest

from accel_engine.cluster_spec import ClusterSpec
from accel_engine.errors import AccelError
from accel_engine.process.peers import PeerMonitor
from accel_engine.process.readiness import ReadinessListener


def test_who_is_at_the_door_has_come(address: str) -> None:
    watch = PeerMonitor(ClusterSpec(("127.0.0.1:1", address)), lambda _: None)
    with ReadinessListener(address):
        watch.wait_for_all()
    watch.stop()
    assert watch.problem == ""


def test_its_port_is_free_afterwards(address: str) -> None:
    host, _, port = address.partition(":")
    with ReadinessListener(address), socket.create_connection((host, int(port))) as visitor:
        assert visitor.recv(1) == b"\0"
    with ReadinessListener(address):
        pass


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AccelError, match=f"cannot listen on port {port}, .*in use"):
            ReadinessListener(f"127.0.0.1:{port}")
