"""Names the trained models that engine processes are asked about, with the options that all such requests have."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Self

from accel_engine.errors import PlanError, RunError, UsageError
from accel_engine.plan import Plan
from accel_engine.plan.options import OptionSpec
from accel_engine.requests.protocol.request import DeviceRequest
from accel_engine.run import read_run
from accel_engine.run.directory.run_paths import checkpoint_steps, host_of_run, latest_checkpoint
from accel_engine.run.history.chosen_checkpoint import CHOICES
from accel_engine.run.store.database import DATABASE

EXAMPLES_AT_A_TIME = 256
"""Examples of a batch where nothing depends on it."""


def _read_checkpoint(text: str) -> str:
    name = text.strip()
    if name not in CHOICES and not name.isdecimal():
        raise UsageError(f"{name!r} is neither auto, best, last nor a step")
    return name


_DEVICE = re.compile(r"(cpu|gpu)(:\d+)?", re.ASCII)


def read_devices(text: str) -> tuple[str, ...]:
    """The names of devices between commas, each once.

    Raises:
        UsageError: A name is neither ``cpu``, ``gpu`` nor such as ``gpu:1``.
    """
    names = tuple(dict.fromkeys(word.strip() for word in text.split(","))) if text.strip() else ()
    for name in names:
        if not _DEVICE.fullmatch(name):
            raise UsageError(f"{name!r} must be cpu, gpu or such as gpu:1")
    return names


def _read_device(text: str) -> str:
    name = text.strip()
    if name not in ("auto", "cpu") and (name == "gpu" or not _DEVICE.fullmatch(name) or name.startswith("cpu")):
        raise UsageError(f"{name!r} must be auto, cpu or such as gpu:0")
    return name


DEVICE = OptionSpec(
    "Where to compute; auto: a GPU that nothing uses, else the CPU.",
    str,
    notes={
        "auto": "a GPU that nothing uses and whose memory suffices, else the CPU",
        "cpu": "the CPU",
        "gpu:0": "this GPU, also while a run trains on it, if enough of its memory is free",
    },
    metavar="auto|cpu|gpu:N",
    read=_read_device,
)
"""The device that computes."""

CHECKPOINT = OptionSpec(
    "Weights of a run; auto: best with restore_best, else last.",
    str,
    notes={
        "auto": "best, if the run restores its best weights, else last",
        "best": "the one with the best monitored metric",
        "last": "the last one",
    },
    metavar="auto|best|last|STEP",
    read=_read_checkpoint,
)
"""The checkpoint with the weights."""

SPLIT = OptionSpec(
    "Examples to use; auto: test, or validation where there is no test split.",
    str,
    notes={
        "auto": "test, or validation where there is no test split",
        "test": "the test split",
        "validation": "the validation split",
        "training": "the examples that the run was trained on",
    },
    choices=("auto", "test", "validation", "training"),
)
"""The examples of the data."""


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A trained model, of a run or of a file; it has one of the two fields."""

    directory: Path | None = None
    """The run's directory."""
    plan: Plan | None = None
    """A plan with the file as its model, and with data."""

    @classmethod
    def of(cls, model: Path | Plan) -> Self:
        """The reference to the model of a run's directory, or of a plan."""
        return cls(plan=model) if isinstance(model, Plan) else cls(model)

    @property
    def model(self) -> Path | Plan:
        """The run's directory, or the plan."""
        return self.plan or self.directory or Path()

    @property
    def path(self) -> Path:
        """The run's directory, or the file."""
        return Path(self.plan.model) if self.plan else self.directory or Path()

    def check(self) -> None:
        """Check that a run that it is of has a checkpoint.

        Raises:
            RunError: The run has no checkpoint; the message says why.
        """
        if self.directory:
            check_checkpoint(self.directory)


def check_checkpoint(directory: Path) -> None:
    """Check that a run has a checkpoint.

    Raises:
        RunError: The run has no checkpoint; the message says why.
    """
    info = read_run(directory)
    if not info.has_engine:
        raise RunError(f"run {directory.name} was {info.made} and has no checkpoints")
    if not latest_checkpoint(directory):
        raise RunError(f"run {directory.name} has no checkpoint yet: the first one is written after an epoch")


def check_steps(directories: Iterable[Path], checkpoint: str) -> None:
    """Check that each of several runs has a checkpoint of the step that a user chose.

    Raises:
        PlanError: A run has no such checkpoint.
    """
    if checkpoint in CHOICES:
        return
    for directory in directories:
        steps = checkpoint_steps(directory)
        if int(checkpoint) not in steps:
            listed = f" or a step of {', '.join(map(str, steps))}" if steps else ""
            raise PlanError("checkpoint", checkpoint, f"must be auto, best, last{listed}")


class RunRequest(DeviceRequest):
    """A request on the model of one run."""

    __slots__ = ()

    directory: Path
    """The run's directory."""

    @property
    def model_paths(self) -> tuple[Path, ...]:
        """See :attr:`DeviceRequest.model_paths`."""
        return (self.directory,)

    def check(self) -> None:
        """See :meth:`EngineRequest.check`; the run needs a checkpoint."""
        check_checkpoint(self.directory)


def host_of_request(request: object) -> str:
    """The host whose runs a request is about; empty for one about this machine.

    Raises:
        RunError: The request is about runs of several machines.
    """
    runs = {path for path in _paths(request) if host_of_run(path) or (path / DATABASE).is_file()}
    hosts = {host_of_run(path) for path in runs}
    if len(hosts) > 1:
        raise RunError(
            "the runs are on different machines, and one computes this for all: bring them here with accel-tui "
            "fetch RUN"
        )
    return "".join(hosts)


def _paths(value: object) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from _paths(getattr(value, field.name, None))
    elif isinstance(value, tuple):
        for each in value:
            yield from _paths(each)
