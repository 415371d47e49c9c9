"""The processes of a trial whose strategy trains in several: one leads the others, and passes its requests on to them.

Each is a trial process itself. None outlives the one that has started it: it exits with its standard input, whatever
it waits for in native code.
"""

import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

from accel_engine.errors import RunError
from accel_engine.measure.trial_process import exit_error
from accel_engine.process.engine_call import EngineConnection
from accel_engine.requests.protocol.request import ExamplesDone, Problem
from accel_engine.requests.try_plan import MemberReady, TellMemory, TrialReady, TrialRequest
from accel_engine.run.directory.run_paths import CHECKPOINTS
from accel_engine.strategies.cluster_spec import ClusterSpec
from accel_engine.training.distributed.peers import LocalWorkers, PeerMonitor, ReadinessListener, worker_environment

POLL_SECONDS = 0.05
"""How often a process looks whether all others accept connections."""

EXIT_SECONDS = 5.0
"""How long to wait, after a connection is lost, for the process at its other end to say why."""

_MAX_LOG = 1 << 16
"""Bytes of the log that may tell why a process has exited."""


class TrialGroup:
    """The other processes of a trial, which this one starts and leads.

    Args:
        request: The first request, which has the plan.
        on_problem: Takes the reply of a process that cannot continue; called in a thread, and does not return.
        workers: Number of workers.
        coordinated: Whether this process coordinates the others, which take no steps by themselves.

    Attributes:
        cluster: The cluster, as this process sees it.
    """

    def __init__(
        self, request: TrialRequest, on_problem: Callable[[Problem], object], *, workers: int, coordinated: bool
    ) -> None:
        self._request, self._on_problem, self._coordinated = request, on_problem, coordinated
        self._members: list[_Member] = []
        self._workers = LocalWorkers(workers, self._start, coordinated=coordinated)
        self.cluster = self._workers.cluster
        os.environ |= worker_environment(self.cluster)  # where TensorFlow reads it

    def _start(self, process: ClusterSpec) -> "subprocess.Popen[str]":
        try:
            return self._start_member(process)
        except BaseException:  # the others are killed now, which is not the problem
            self._stop_reports()
            raise

    def _start_member(self, process: ClusterSpec) -> "subprocess.Popen[str]":
        folder = self._request.work_folder / process.run_directory_name
        (folder / CHECKPOINTS).mkdir(parents=True, mode=0o700)
        kinds = (*TrialRequest.parts, Problem)
        started = EngineConnection(TrialRequest, kinds, environment=worker_environment(process), new_session=False)
        self._members.append(member := _Member(process, started, self._on_problem))
        member.send(replace(self._request, work_folder=folder))
        return started.process

    def ask(self, message: Any) -> None:
        """Pass a request on to the workers, which take the same steps as this process."""
        if not self._coordinated:
            for member in self._members:
                member.send(message)

    def memory(self, own: float | None, *, on_cpu: bool) -> float | None:
        """The memory of all processes, once they have answered the last request; ``None`` if one's is unknown.

        Args:
            own: Bytes of this process.
            on_cpu: Whether CPUs train: then the result is the sum over processes, else the maximum over devices.
        """
        if self._coordinated:
            for member in self._members:
                member.send(TellMemory())
        replies = [(member.memory(), member.trains) for member in self._members]  # all are read
        found = [memory for memory, trains in replies if on_cpu or trains]
        found += [own] if on_cpu or not self._coordinated else []
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        return sum(known) if on_cpu else max(known)

    def device_memory(self, own: int | None) -> int | None:
        """The memory of the smallest device that trains, once all are ready; ``None`` for host memory, or if unknown.

        Args:
            own: Bytes of this process's smallest device; ``None`` for host memory, or if unknown.
        """
        found = (own, *(member.device_memory for member in self._members))
        return min((each for each in found if each is not None), default=None)

    def wait_ready(self) -> None:
        """Wait until the processes that serve this one have read their data."""
        if self._coordinated:
            for member in self._members:
                member.memory()

    def wait_for_problem(self) -> None:
        """Wait some seconds for the problem of another process, which explains why its connection is lost."""
        for member in self._members:
            member.wait_for_exit(EXIT_SECONDS)

    def end(self) -> None:
        """Kill the processes."""
        self._stop_reports()
        self._workers.end(0.0)

    def _stop_reports(self) -> None:
        for member in self._members:
            member.is_ending = True


class _Member:
    """One of the other processes, whose replies a thread reads.

    Attributes:
        is_ending: Whether its end is not a problem.
        trains: Whether it is a worker.
        device_memory: Bytes of its smallest device, once it is ready; ``None`` for host memory.
    """

    def __init__(
        self, process: ClusterSpec, started: EngineConnection, on_problem: Callable[[Problem], object]
    ) -> None:
        self.is_ending = False
        self.trains = process.role == "worker"
        self.device_memory: int | None = None
        self._name, self._connection, self._on_problem = process.name, started, on_problem
        self._replies: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name=f"replies of {process.name}", daemon=True)
        self._reader.start()

    def send(self, message: Any) -> None:
        """Send a message."""
        with suppress(OSError):  # it has exited, which its reader reports
            self._connection.channel.send(message)

    def memory(self) -> float | None:
        """The memory in the next reply; waits for it."""
        return self._replies.get()

    def wait_for_exit(self, seconds: float) -> None:
        """Wait until the process has exited, which ends this one, for at most some seconds."""
        self._reader.join(seconds)

    def _read(self) -> None:
        try:
            for message, _ in self._connection.messages():
                self._take(message)
        except RunError as problem:
            self._report(Problem(f"{self._name}: {problem}"))
        error = exit_error(self._connection.process.wait(), _log())
        self._report(Problem(f"{self._name}: {error}", error.out_of_memory))
        self._connection.close()

    def _take(self, message: Any) -> None:
        match message:
            case Problem():
                self._report(message)
            case ExamplesDone():
                pass
            case _:
                if isinstance(message, TrialReady | MemberReady):
                    self.device_memory = message.device_memory
                self._replies.put(message.memory)

    def _report(self, problem: Problem) -> None:
        if not self.is_ending:
            self._on_problem(problem)


def _log() -> str:
    """The end of what the processes of this trial have written to their standard error, if that is a file."""
    with suppress(OSError):
        return os.pread(2, _MAX_LOG, max(0, os.fstat(2).st_size - _MAX_LOG)).decode(errors="replace")
    return ""


def wait_for_members(cluster: ClusterSpec) -> None:
    """Wait until all other processes accept connections, as TensorFlow blocks this one while it waits for them.

    Args:
        cluster: The cluster, as this process sees it.

    Raises:
        RunError: A process does not; the message names it.
    """
    if cluster.serves or not cluster.peers:
        return
    monitor = PeerMonitor(cluster, lambda _: None)
    with nullcontext() if cluster.coordinated else ReadinessListener(cluster.workers[cluster.index]):
        while not monitor.all_joined:
            if monitor.problem:
                raise RunError(monitor.problem)
            time.sleep(POLL_SECONDS)
    monitor.stop()
