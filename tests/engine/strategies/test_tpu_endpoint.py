import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from accel_engine.errors import UsageError
from accel_engine.strategies.tpu_endpoint import TpuEndpoint


@pytest.mark.parametrize(
    ("text", "source", "target", "addresses"),
    [
        ("local", "--tpu", "local", ()),
        (" my-tpu ", "TPU_NAME", "my-tpu", ()),
        ("projects/p/locations/z/nodes/n", "--tpu", "projects/p/locations/z/nodes/n", ()),
        ("grpc://10.0.0.2:8470", "--tpu", "grpc://10.0.0.2:8470", (("10.0.0.2", 8470),)),
        ("10.0.0.2", "--tpu", "grpc://10.0.0.2:8470", (("10.0.0.2", 8470),)),
        ("10.0.0.2:8470", "COLAB_TPU_ADDR", "grpc://10.0.0.2:8470", (("10.0.0.2", 8470),)),
        ("tpu.example", "COLAB_TPU_ADDR", "grpc://tpu.example:8470", (("tpu.example", 8470),)),
        ("a:1, grpc://b:2", "TPU_NAME", "grpc://a:1,grpc://b:2", (("a", 1), ("b", 2))),
    ],
)
def test_valid_endpoints_are_parsed(
    text: str, source: str, target: str, addresses: tuple[tuple[str, int], ...]
) -> None:
    assert TpuEndpoint.parse(text, source) == TpuEndpoint(target, source, addresses)
    assert TpuEndpoint.parse(text, source).local is (target == "local")


@pytest.mark.parametrize("text", ["grpc://", "http://h:1", "h:99999", "h:0", "h:", "a b", "[::1]:8470", "-x"])
def test_invalid_endpoints_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an address|is neither local"):
        TpuEndpoint.parse(text, "--tpu")


def test_the_plan_takes_precedence_over_the_environment() -> None:
    environment = {"COLAB_TPU_ADDR": "10.0.0.2:8470", "TPU_NAME": "by-name"}
    assert TpuEndpoint.find("local", environment) == TpuEndpoint("local", "--tpu")
    found = TpuEndpoint.find("", environment)
    assert found is not None
    assert found.source == "COLAB_TPU_ADDR"
    assert TpuEndpoint.find("", {"COLAB_TPU_ADDR": " ", "TPU_NAME": "by-name"}) == TpuEndpoint("by-name", "TPU_NAME")
    assert TpuEndpoint.find("", {}) is None


def test_an_invalid_endpoint_names_its_source() -> None:
    with pytest.raises(UsageError, match=r"^TPU_NAME: 'a b' is neither"):
        TpuEndpoint.find("", {"TPU_NAME": "a b"})


@pytest.fixture
def listening() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


def test_an_unreachable_host_is_named(listening: int, silent_port: int) -> None:
    assert TpuEndpoint.parse(f"127.0.0.1:{listening}", "--tpu").connection_problem() == ""
    problem = TpuEndpoint.parse(f"127.0.0.1:{listening},127.0.0.1:{silent_port}", "--tpu").connection_problem()
    assert f"refuses connections on port {silent_port}" in problem
    assert TpuEndpoint.parse("by-name", "--tpu").connection_problem() == ""
