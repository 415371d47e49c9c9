"""The other processes of a cluster: starting those of this machine, and noticing who is missing.

TensorFlow waits for a missing worker for ever, deaf to signals, so that each process watches the
others by itself: a worker's server accepts connections as long as its process lives.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from accel_engine import strategies
from accel_engine.cluster_spec import LOCAL, ClusterSpec
from accel_engine.launch import start
from accel_engine.plan import Plan
from accel_engine.run.creation import create_worker

JOIN_SECONDS = 180.0
"""How long the others may take to come, unless ``ACCEL_TUI_JOIN_SECONDS`` says otherwise."""

LOST_SECONDS = 10.0
"""How long a worker may refuse connections before it counts as gone."""

UNRESPONSIVE_SECONDS = 20.0
"""How long a worker may take connections without a word: its process is stopped, or its machine hangs.

Training together, TensorFlow gives it up by itself about then, without a name."""

CONNECT_SECONDS = 2.0
"""How long a connection may take."""

REPLY_SECONDS = 2.0
"""How long the first word over it may take, which TensorFlow's server says by itself."""

WATCH_SECONDS = 1.0
"""How often connections are tried."""

LOST_LOCALLY_SECONDS = 2.0
"""The same for a coordinator on this machine, where only a port that nobody listens on refuses."""

EXIT_SECONDS = 10.0
"""How long a worker may take to end after the chief."""


class LocalWorkers:
    """Workers on this machine, each an engine process that writes a run of its own within the chief's.

    Args:
        directory: The chief's run.
        plan: What all of them train.
    """

    def __init__(self, directory: Path, plan: Plan) -> None:
        coordinated = strategies.find(plan.strategy).coordinated
        self._ports = [reserve_port() for _ in range(plan.local_workers + 2 * coordinated)]
        self.cluster = _local_cluster(tuple(_address(held) for held in self._ports), coordinated=coordinated)
        if sys.platform != "linux":  # elsewhere who is bound keeps what comes to a port from who listens there
            self._release_ports()
        self._processes: list[subprocess.Popen[str]] = []
        try:
            for process in self.cluster.processes:
                if process != self.cluster:
                    run = create_worker(directory, process.run_name, plan)
                    self._processes.append(start(run, environment(process)))
        except BaseException:
            self.end(0.0)
            raise

    def end(self, patience: float = EXIT_SECONDS) -> None:
        """Wait until they have ended by themselves, and kill those that have not.

        Those that serve a coordinator are told to, which takes them no time.
        """
        if self.cluster.coordinated:
            patience = EXIT_SECONDS
            for process in self._processes:
                process.terminate()
        deadline = time.monotonic() + patience
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            process.kill()
            process.wait()
        self._release_ports()

    def _release_ports(self) -> None:
        for held in self._ports:
            held.close()


def environment(cluster: ClusterSpec) -> dict[str, str]:
    """What tells a process of this machine which part of a cluster it is."""
    return {"TF_CONFIG": cluster.to_tf_config()} | ({LOCAL: "1"} if cluster.local else {})


class PeerMonitor:
    """Tries to connect to every other process that this one needs, again and again, in a thread.

    A coordinator needs all of them to begin, and goes on while one of its workers is there.

    Args:
        cluster: Who they are.
        on_change: Called from the thread with what is waited for, whenever that changes; empty for nobody.
        on_loss: Called from the thread with a word of who is gone, where training goes on without.
        join_seconds: How long they may take to come; as the environment or :data:`JOIN_SECONDS` says when left out.
        lost_seconds: How long one may then be away.
        unresponsive_seconds: How long one may be there without a word.
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
        self._replaceable = {part.name for part in cluster.processes if cluster.coordinated and part.role == "worker"}
        self._on_change = on_change
        self._on_loss = on_loss
        self._join_seconds = _join_seconds() if join_seconds is None else join_seconds
        usual = LOST_LOCALLY_SECONDS if cluster.serves and cluster.local else LOST_SECONDS
        self._lost_seconds = usual if lost_seconds is None else lost_seconds
        self._unresponsive_seconds = unresponsive_seconds
        self._last_reply: dict[str, float] = {}
        self._joined: set[str] = set()
        self._lost: set[str] = set()
        self._last_connected = dict.fromkeys(self._peers, time.monotonic())
        self._stopped = threading.Event()
        self.problem = ""
        """Why training cannot go on; empty while it can."""
        self._all_joined = threading.Event()
        self._finished = threading.Event()
        threading.Thread(target=self._watch, name="watch-peers", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._stopped.set()

    @property
    def all_joined(self) -> bool:
        """Whether all have come, be they there or gone again."""
        return self._all_joined.is_set()

    def wait_for_all(self) -> None:
        """Wait until all have come; for ever, if somebody does not."""
        self._all_joined.wait()

    def wait_for_problem(self) -> str:
        """Wait as long as it takes to be sure that somebody is gone; who that is, or nothing."""
        look = WATCH_SECONDS + (CONNECT_SECONDS + REPLY_SECONDS) * len(self._peers)
        self._finished.wait(max(self._lost_seconds, self._unresponsive_seconds) + 2 * look)
        return self.problem

    def _watch(self) -> None:
        waited_for: str | None = None
        while not self._stopped.wait(WATCH_SECONDS) and not self.problem:
            self._probe_all()
            missing = ", ".join(f"{name} ({self._peers[name]})" for name in self._peers if name not in self._joined)
            if missing != waited_for:
                waited_for = missing
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
            who, away = f"{name} ({address})", now - self._last_connected[name]
            if name in self._lost:
                continue
            if name not in self._joined and away > self._join_seconds:
                self.problem = f"{who} did not come within {self._join_seconds:g} s"
            elif name in self._joined and away > self._lost_seconds:
                self._handle_loss(name, f"{who} is gone: it has refused connections for {self._lost_seconds:g} s")
            elif accepts and now - self._last_reply[name] > self._unresponsive_seconds:
                self._handle_loss(
                    name,
                    f"{who} hangs: it takes connections, and has said nothing for {self._unresponsive_seconds:g} s",
                )

    def _handle_loss(self, name: str, said: str) -> None:
        self._lost.add(name)
        if name in self._replaceable and self._replaceable - self._lost:
            self._on_loss(f"{said}; training goes on with {', '.join(sorted(self._replaceable - self._lost))}")
        else:
            self.problem = said


def _local_cluster(addresses: tuple[str, ...], *, coordinated: bool) -> ClusterSpec:
    """The processes of a plan on this machine, as its chief sees them: the one that asks."""
    if not coordinated:
        return ClusterSpec(addresses, local=True)
    coordinator, server, *workers = addresses
    return ClusterSpec(tuple(workers), (server,), role="chief", coordinator=coordinator, local=True)


def _join_seconds() -> float:
    with contextlib.suppress(KeyError, ValueError):
        return float(os.environ["ACCEL_TUI_JOIN_SECONDS"])
    return JOIN_SECONDS


def _probe(address: str) -> tuple[bool, bool]:
    """Whether somebody takes connections there, as a process does by the system alone, and says a word by itself."""
    host, _, port = address.rpartition(":")
    accepts = answers = False
    with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS) as door:
        accepts = True
        door.settimeout(REPLY_SECONDS)
        answers = bool(door.recv(1))
    return accepts, answers


def reserve_port() -> socket.socket:
    """A port on which nobody listens, and that is given to nobody who wants any while TensorFlow is being imported."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # so that who names it may listen there
    held.bind(("127.0.0.1", 0))
    return held


def _address(held: socket.socket) -> str:
    return f"127.0.0.1:{held.getsockname()[1]}"
