"""What every place where a run is started has, and what a run asks of it."""

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from accel_engine.devices.device_types import Device
from accel_engine.errors import RunError, UsageError
from accel_engine.places import PlaceName, PlaceRequest
from accel_engine.plan.resolved_plan import ResolvedPlan
from accel_engine.text import printable_line, shell_command

TOOL_SECONDS = 60.0
"""How long a command of a place's engine, such as ``sbatch``, may take."""


@dataclass(frozen=True, slots=True)
class Job:
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
    def arguments(self) -> tuple[str, ...]:
        """What ``python -m accel_engine.places start`` or ``end`` gets on the place's machines."""
        return (str(self.directory), *([str(self.plan_file)] if self.plan_file else ()))

    @property
    def gpus(self) -> int:
        """GPUs of each machine that the plan trains on."""
        placement = self.resolved.placement
        return sum(name.startswith("gpu") for name in placement.devices) if placement else 0


@dataclass(frozen=True, slots=True)
class JobState:
    """What a place's engine says about a job."""

    waits: bool = False
    """Whether it is to start, or starts again."""
    runs: bool = False
    """Whether its processes run."""
    reason: str = ""
    """Why it waits or has ended, in words; empty if unknown."""

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

    @abstractmethod
    def describe(self, request: PlaceRequest) -> tuple[Device, ...]:
        """The devices of one of its machines, as it says, or as the request tells.

        Raises:
            UsageError: There is no such place, or it cannot be reached from here.
        """

    @abstractmethod
    def files(self, job: Job) -> Mapping[str, str]:
        """The files from which it starts a run: texts by name.

        Raises:
            UsageError: It cannot start such a run.
        """

    @abstractmethod
    def submit(self, job: Job) -> str:
        """Give a run to the place's engine, and return what that calls it.

        Raises:
            RunError: It does not take the run.
        """

    @abstractmethod
    def state(self, job: str) -> JobState:
        """What the place's engine says about a job.

        Raises:
            RunError: It cannot be asked.
        """

    @abstractmethod
    def cancel(self, job: str) -> None:
        """Take a job from the place's engine, whether it waits or runs.

        Raises:
            RunError: It cannot be asked.
        """


def told_devices(gpus: int, model: str = "") -> tuple[Device, ...]:
    """The devices of a machine with some GPUs, of which nothing else is known."""
    return (Device("cpu:0", "cpu", "CPU"), *(Device(f"gpu:{index}", "gpu", model or "GPU") for index in range(gpus)))


def run_tool(command: Sequence[str], package: str, *, stdin: str | None = None) -> str:
    """Run a command of a place's engine and return what it prints.

    Args:
        command: The command and its arguments.
        package: What has the command, in words.
        stdin: Its input.

    Raises:
        UsageError: It is not installed.
        RunError: It fails, or does not end in time.
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
        said = printable_line(" ".join((done.stderr or done.stdout).split())) or f"exit status {done.returncode}"
        raise RunError(f"{shell_command(list(command))}: {said}")
    return done.stdout
