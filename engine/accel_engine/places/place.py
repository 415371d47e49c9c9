"""The base of all places where runs are started, and a run as a place gets it."""

import math
import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from accel_engine.devices.device_types import Device
from accel_engine.errors import AccelError, RunError, UsageError
from accel_engine.places import PlaceName, PlaceRequest
from accel_engine.plan.interval import parse_duration
from accel_engine.plan.memory_estimate import GRAPH, TENSORFLOW, data_bytes
from accel_engine.plan.options import command_words
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.run.directory.run_paths import home
from accel_engine.text import printable_line, shell_command

START_AND_END = 600.0
"""Seconds for the start and the end of a job, besides its plan's time limit."""

CPU_MEMORY, GPU_MEMORY = 2048, 8192
"""MiB of a machine at least: a GPU's libraries take more."""

_MEMORY_STEP = 512 << 20

_POLL_SECONDS = 0.2

TOOL_SECONDS = 60.0
"""How long a command of a place's engine, such as ``sbatch``, may take."""


@dataclass(frozen=True, slots=True)
class PlacedJob:
    """A run as a place starts it."""

    resolved: ResolvedPlan
    """Its plan, placed on the devices of one machine of the place."""
    request: PlaceRequest
    directory: Path
    """The run's directory, also on the place's machines; for a job that is only written, the link to it."""
    plan_file: Path | None = None
    """The plan from which the job makes its run; ``None`` if the run exists."""

    @property
    def nodes(self) -> int:
        """The number of machines."""
        return self.request.nodes or 1

    @property
    def memory(self) -> int:
        """MiB of each machine: what is asked; else 1.5 times what TensorFlow and two copies of the data take at most.

        It is at least :data:`CPU_MEMORY` or :data:`GPU_MEMORY`.
        """
        known = 0
        with suppress(AccelError):
            known = data_bytes(self.resolved.data) or 0
        estimate = (TENSORFLOW[1] + GRAPH[1] + 2 * known) * 3 // 2
        least = GPU_MEMORY if self.gpus else CPU_MEMORY
        return self.request.host_memory or max(least, math.ceil(estimate / _MEMORY_STEP) * (_MEMORY_STEP >> 20))

    @property
    def seconds(self) -> float | None:
        """How long a job may take: what is asked, or the plan's time limit and some more; ``None`` without either."""
        limit = self.resolved.plan.time_limit
        return self.request.walltime or (parse_duration("time_limit", limit) + START_AND_END if limit else None)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of ``python -m accel_engine.places start`` or ``end`` on the place's machines."""
        return (str(self.directory), *([str(self.plan_file)] if self.plan_file else ()))

    @property
    def gpus(self) -> int:
        """GPUs of each machine that the plan trains on."""
        placement = self.resolved.placement
        return sum(name.startswith("gpu") for name in placement.devices) if placement else 0


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job, as a place's engine reports it."""

    waits: bool = False
    """Whether it is to start, or starts again."""
    runs: bool = False
    """Whether its processes run."""
    reason: str = ""
    """Why it waits or has ended, in words; empty if unknown."""
    is_cancelled: bool = False
    """Whether somebody has taken it from the place."""
    is_complete: bool = False
    """Whether it has ended as it should; only known of jobs whose runs are not here."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and does not start again."""
        return not (self.waits or self.runs)


class Place(ABC):
    """Where a run is started.

    Args:
        name: Its name.
    """

    def __init__(self, name: PlaceName) -> None:
        self.name = name

    def nodes(self, request: PlaceRequest) -> int:
        """How many machines a run gets.

        Raises:
            UsageError: The request contradicts the name.
        """
        return request.nodes or 1

    def options(self, request: PlaceRequest) -> tuple[str, ...]:
        """The options of commands that ask for the same."""
        nodes = None if request.nodes == self.nodes(PlaceRequest()) else request.nodes
        return ("--on", str(self.name), *command_words(replace(request, nodes=nodes)))

    def room(self, request: PlaceRequest) -> int:
        """How many such runs it could train at the same time, by what :meth:`describe` has found."""
        return 1

    def has_run_here(self, request: PlaceRequest) -> bool:
        """Whether the run is made here, in a directory that the place's machines see under the same path."""
        return True

    def log_command(self, job: str, since: float | None = None) -> list[str]:
        """The command that prints what a job prints, for a run that is not here.

        Args:
            job: The job.
            since: Leave out what was printed before, in seconds since the Unix epoch.
        """
        raise UsageError(f"{self.name} shows no log of {job}")

    def run(self, job: PlacedJob, words: Sequence[str], should_stop: Callable[[], bool]) -> int:
        """Run a command of this program on one of its machines, with what it prints shown here.

        Args:
            job: Asks for the machine; its directory is not looked at.
            words: The command.
            should_stop: Whether to end it; asked all the time.

        Returns:
            Its exit status.

        Raises:
            UsageError: The place runs no commands.
            RunError: The place's engine cannot be reached.
        """
        raise UsageError(f"{self.name} runs no commands, but trains runs: run this on one of its machines")

    def describe(self, request: PlaceRequest) -> tuple[Device, ...]:
        """The devices of one of its machines, by the place's engine or by the request.

        Raises:
            UsageError: There is no such place, it does not have what is asked, or it cannot be reached from here.
        """
        request.check_is_taken(self.name)
        return self.machine(request)

    @abstractmethod
    def machine(self, request: PlaceRequest) -> tuple[Device, ...]:
        """See :meth:`describe`, of a request for nothing that the place does not have."""

    @abstractmethod
    def files(self, job: PlacedJob) -> Mapping[str, str]:
        """The files from which it starts a run: texts by name.

        Raises:
            UsageError: The place cannot start such a run.
        """

    @abstractmethod
    def submit(self, job: PlacedJob) -> str:
        """Give a run to the place's engine, and return the name of its job.

        Raises:
            RunError: The engine does not accept the run.
        """

    @abstractmethod
    def state(self, job: str) -> JobState:
        """The state of a job, as the place's engine reports it.

        Raises:
            RunError: The place's engine cannot be asked.
        """

    @abstractmethod
    def cancel(self, job: str) -> None:
        """Cancel a job of the place's engine, whether it waits or runs.

        Raises:
            RunError: The place's engine cannot be asked.
        """


class ArrayPlace(Place):
    """A place that takes several runs as one job, an array."""

    @abstractmethod
    def submit_together(self, jobs: Sequence[PlacedJob], folder: Path, at_once: int) -> Iterator[tuple[PlacedJob, str]]:
        """Give several runs to the place's engine; yields each with the name of its job, once it is accepted.

        Args:
            jobs: The runs.
            folder: Where files that concern several of them are written.
            at_once: Most of them that run at the same time.

        Raises:
            RunError: The engine does not accept the runs, or the files cannot be written.
        """


def room_on(machines: int, gpus: int, request: PlaceRequest) -> int:
    """How many runs some machines can train at the same time: one each, or as many as their GPUs are enough for.

    Args:
        machines: How many there are.
        gpus: GPUs of each.
        request: What a run asks for.
    """
    return max(1, machines // (request.nodes or 1) * max(1, gpus // (request.gpus or gpus or 1)))


def machine_devices(gpus: int, model: str = "", *, tpus: int = 0) -> tuple[Device, ...]:
    """The devices of a machine with some GPUs or TPU chips, of which nothing else is known."""
    return (
        Device("cpu:0", "cpu", "CPU"),
        *(Device(f"gpu:{index}", "gpu", model or "GPU") for index in range(gpus)),
        *(Device(f"tpu:{index}", "tpu", "TPU", cores=1) for index in range(tpus)),
    )


def job_folder() -> str:
    """The folder in which a job runs on each machine: the working directory.

    Raises:
        UsageError: It was removed.
    """
    try:
        return os.getcwd()
    except OSError:
        raise UsageError(
            "the working directory was removed: start accel-tui in a folder that all machines have"
        ) from None


def program_command(words: Sequence[str], python: str = sys.executable) -> list[str]:
    """The command line that runs a command of this program on a machine of a place, until the end of its input."""
    return [python, "-P", "-m", "accel_engine.places", "run", str(home().absolute()), *words]


def run_attached(
    command: Sequence[str], package: str, should_stop: Callable[[], bool], waits: Callable[[], bool] = lambda: False
) -> int:
    """Run a program that passes input and output of :func:`program_command` on; returns its exit status.

    Its input ends to stop it, as a signal would reach each process of a job.

    Args:
        command: The program with its arguments.
        package: What has the program, in words.
        should_stop: Whether to stop.
        waits: Whether the command has yet to begin, so that nobody looks at its input.

    Raises:
        UsageError: The program is not installed.
    """
    try:
        process = subprocess.Popen(list(command), stdin=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}: {package} has it") from error
    assert process.stdin  # noqa: S101 (it is a pipe)
    while process.poll() is None:
        if should_stop() and not process.stdin.closed:
            if waits():
                process.terminate()
            process.stdin.close()
        time.sleep(_POLL_SECONDS)
    return process.returncode


def run_tool(command: Sequence[str], package: str, *, stdin: str | None = None, what: str = "") -> str:
    """Run a command of a place's engine and return what it prints.

    Args:
        command: The command and its arguments.
        package: What has the command, in words.
        stdin: Its input.
        what: Begins the message when it fails; by default the command.

    Raises:
        UsageError: The command is not installed.
        RunError: The command fails, or does not end in time.
    """
    try:
        done = subprocess.run(
            list(command), input=stdin, capture_output=True, text=True, errors="replace", timeout=TOOL_SECONDS
        )
    except FileNotFoundError as error:
        raise UsageError(f"{command[0]} is not installed here: {package} has it") from error
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{command[0]} has not answered for {TOOL_SECONDS:g} s") from error
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        said = printable_line(lines[-1]) if lines else f"exit status {done.returncode}"
        raise RunError(f"{what or shell_command(list(command))}: {said}")
    return done.stdout
