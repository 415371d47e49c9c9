"""Starts the local processes of a cluster and monitors the connections to all others.

TensorFlow waits for a missing worker forever and ignores signals, so each process monitors the others itself: a
worker's server accepts connections as long as its process is alive.
"""

import contextlib
import ipaddress
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from accel_engine.errors import AccelError
from accel_engine.plan import Plan
from accel_engine.process.engine_process import start_engine
from accel_engine.run.runs.creation import create_worker
from accel_engine.strategies.cluster_spec import LOCAL, ClusterSpec

JOIN_SECONDS = 180.0
"""How long the others may take to start; the environment variable ``ACCEL_TUI_JOIN_SECONDS`` overrides it."""

LOST_SECONDS = 10.0
"""How long a worker may refuse connections before it counts as lost."""

UNRESPONSIVE_SECONDS = 20.0
"""How long a worker may accept connections without answering: its process is stopped, or its machine hangs.

TensorFlow gives up after about as long, without naming the worker."""

CONNECT_SECONDS = 2.0
"""Timeout of a connection."""

REPLY_SECONDS = 2.0
"""Timeout of the first byte, which TensorFlow's server sends without a request."""

WATCH_SECONDS = 1.0
"""How often connections are probed."""

LOST_LOCALLY_SECONDS = 2.0
""":data:`LOST_SECONDS` for a coordinator on this machine, where a refused connection means that it has exited."""

EXIT_SECONDS = 10.0
"""How long a worker may take to exit after the chief."""


class LocalWorkers:
    """Worker processes on this machine, which this one leads.

    Args:
        count: Number of workers.
        start_process: Starts the engine process of another member of the cluster.
        coordinated: Whether this process coordinates the others.
    """

    def __init__(
        self, count: int, start_process: Callable[[ClusterSpec], "subprocess.Popen[str]"], *, coordinated: bool
    ) -> None:
        self._ports = [reserve_port() for _ in range(count + 2 * coordinated)]
        self.cluster = _local_cluster(tuple(_address(reserved) for reserved in self._ports), coordinated=coordinated)
        if sys.platform != "linux":  # elsewhere a bound socket would receive the listener's connections
            self._release_ports()
        self._processes: list[subprocess.Popen[str]] = []
        try:
            for process in self.cluster.processes:
                if process != self.cluster:
                    self._processes.append(start_process(process))
        except BaseException:
            self.end(0.0)
            raise

    def end(self, timeout: float = EXIT_SECONDS) -> None:
        """Wait for the processes to exit, and kill the ones that do not.

        Args:
            timeout: Seconds; processes that serve a coordinator are terminated first, and always have
                :data:`EXIT_SECONDS`.
        """
        if self.cluster.coordinated:
            timeout = EXIT_SECONDS
            for process in self._processes:
                process.terminate()
        deadline = time.monotonic() + timeout
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            process.kill()
            process.wait()
        self._release_ports()

    def _release_ports(self) -> None:
        for reserved in self._ports:
            reserved.close()


def start_worker_run(directory: Path, plan: Plan, process: ClusterSpec) -> "subprocess.Popen[str]":
    """Start a worker of a run, an engine with its own run inside the chief's.

    Args:
        directory: The chief's run.
        plan: The plan that all workers train.
        process: The cluster, as the worker sees it.
    """
    return start_engine(create_worker(directory, process.run_directory_name, plan), worker_environment(process))


def worker_environment(cluster: ClusterSpec) -> dict[str, str]:
    """The environment variables that tell a local process its role in a cluster."""
    return {"TF_CONFIG": cluster.to_tf_config()} | ({LOCAL: "1"} if cluster.local else {})


class PeerMonitor:
    """Probes the connection to every other process that this one needs, in a thread.

    A coordinator needs all of them to start, and continues while one of its workers is reachable.

    Args:
        cluster: Their addresses.
        on_change: Called from the thread with the names of missing processes whenever these change; empty for none.
        on_loss: Called from the thread with a message about a lost worker that training continues without.
        join_seconds: How long they may take to start; by default :data:`JOIN_SECONDS` or as the environment says.
        lost_seconds: How long one may then refuse connections.
        unresponsive_seconds: How long one may accept connections without answering.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        on_change: Callable[[str], None],
        on_loss: Callable[[str], None] = lambda _: None,
        join_seconds: float | None = None,
        lost_seconds: float | None = None,
        unresponsive_seconds: float = UNRESPONSIVE_SECONDS,
    ) -> None:
        self._peers = cluster.peers
        workers = (process for process in cluster.processes if process.role == "worker")
        self._replaceable = {worker.name for worker in workers if cluster.coordinated}
        self._on_change = on_change
        self._on_loss = on_loss
        self._join_seconds = _join_seconds() if join_seconds is None else join_seconds
        default = LOST_LOCALLY_SECONDS if cluster.serves and cluster.local else LOST_SECONDS
        self._lost_seconds = default if lost_seconds is None else lost_seconds
        self._unresponsive_seconds = unresponsive_seconds
        self._last_reply: dict[str, float] = {}
        self._joined: set[str] = set()
        self._lost: set[str] = set()
        self._last_connected = dict.fromkeys(self._peers, time.monotonic())
        self._stopped = threading.Event()
        self.problem = ""
        """Why training cannot continue; empty while it can."""
        self._all_joined = threading.Event()
        self._finished = threading.Event()
        threading.Thread(target=self._watch, name="watch-peers", daemon=True).start()

    def stop(self) -> None:
        """Stop monitoring."""
        self._stopped.set()

    @property
    def all_joined(self) -> bool:
        """Whether all processes have started, including those lost since."""
        return self._all_joined.is_set()

    def wait_for_all(self) -> None:
        """Block until all processes have started; forever, if one does not: see :attr:`problem`."""
        self._all_joined.wait()

    def wait_for_problem(self) -> str:
        """Wait as long as it may take to notice a lost process; returns :attr:`problem`."""
        probe = WATCH_SECONDS + (CONNECT_SECONDS + REPLY_SECONDS) * len(self._peers)
        self._finished.wait(max(self._lost_seconds, self._unresponsive_seconds) + 2 * probe)
        return self.problem

    def _watch(self) -> None:
        reported: str | None = None
        while not self._stopped.wait(WATCH_SECONDS) and not self.problem:
            self._probe_all()
            missing = ", ".join(f"{name} ({self._peers[name]})" for name in self._peers if name not in self._joined)
            if missing != reported:
                reported = missing
                self._on_change(missing)
            if not missing:
                self._all_joined.set()
        self._finished.set()

    def _probe_all(self) -> None:
        for name, address in self._peers.items():
            now = time.monotonic()
            accepts, answers = _probe(address)
            if accepts:
                self._joined.add(name)
                self._last_connected[name] = now
                self._last_reply.setdefault(name, now)
            if answers:
                self._last_reply[name] = now
                self._lost.discard(name)
            peer, away = f"{name} ({address})", now - self._last_connected[name]
            if name in self._lost:
                continue
            if name not in self._joined and away > self._join_seconds:
                self.problem = f"{peer} did not start within {self._join_seconds:g} s"
            elif name in self._joined and away > self._lost_seconds:
                self._handle_loss(name, f"{peer} was lost: it has refused connections for {self._lost_seconds:g} s")
            elif accepts and now - self._last_reply[name] > self._unresponsive_seconds:
                self._handle_loss(
                    name,
                    f"{peer} hangs: it accepts connections but has not answered for {self._unresponsive_seconds:g} s",
                )

    def _handle_loss(self, name: str, message: str) -> None:
        self._lost.add(name)
        if name in self._replaceable and self._replaceable - self._lost:
            self._on_loss(f"{message}; training continues with {', '.join(sorted(self._replaceable - self._lost))}")
        else:
            self.problem = message


def _local_cluster(addresses: tuple[str, ...], *, coordinated: bool) -> ClusterSpec:
    """The cluster of a plan's local processes, as the chief (this process) sees it."""
    if not coordinated:
        return ClusterSpec(addresses, local=True)
    coordinator, server, *workers = addresses
    return ClusterSpec(tuple(workers), (server,), role="chief", coordinator=coordinator, local=True)


def _join_seconds() -> float:
    with contextlib.suppress(KeyError, ValueError):
        return float(os.environ["ACCEL_TUI_JOIN_SECONDS"])
    return JOIN_SECONDS


def _probe(address: str) -> tuple[bool, bool]:
    """Whether an address accepts connections, and whether it then sends a byte."""
    host, _, port = address.rpartition(":")
    accepts = answers = False
    with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS) as peer:
        accepts = True
        peer.settimeout(REPLY_SECONDS)
        answers = bool(peer.recv(1))
    return accepts, answers


def reserve_port() -> socket.socket:
    """Reserve a free port, so that no other program gets it while TensorFlow is being imported."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # so that TensorFlow can listen on it
    reserved.bind(("127.0.0.1", 0))
    return reserved


def _address(reserved: socket.socket) -> str:
    return f"127.0.0.1:{reserved.getsockname()[1]}"


_POLL_SECONDS = 0.2
"""How often the thread checks whether to stop."""


class ReadinessListener:
    """Listens on the port of TensorFlow's server and answers every connection with a byte, until closed.

    TensorFlow waits for the other workers in a call that blocks all threads of the process: no commands would be
    handled and no heartbeat written. So each worker makes that call only when all others accept connections.

    Args:
        address: This process's address, ``host:port``. Unless it is on the loopback interface, listens on all
            interfaces, as TensorFlow does: it may be the address of a router.

    Raises:
        AccelError: The port cannot be listened on.
    """

    def __init__(self, address: str) -> None:
        name, _, text = address.rpartition(":")
        host, port = _loopback(name.strip("[]")), int(text)
        both = not host and socket.has_dualstack_ipv6()
        try:
            self._listener = socket.create_server(
                (host, port), family=socket.AF_INET6 if both or ":" in host else socket.AF_INET, dualstack_ipv6=both
            )
        except OSError as error:
            raise AccelError(f"cannot listen on port {port}, to which the other workers connect: {error}") from error
        self._listener.settimeout(_POLL_SECONDS)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._answer, name="readiness", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        self._listener.close()

    def _answer(self) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(OSError):  # no connection in time, or it is closed again
                connection, _ = self._listener.accept()
                with connection:
                    connection.sendall(b"\0")


def _loopback(host: str) -> str:
    """A host that is an address of the loopback interface; else empty."""
    with contextlib.suppress(ValueError):
        return host if ipaddress.ip_address(host).is_loopback else ""
    return ""
