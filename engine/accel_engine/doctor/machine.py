"""What the checks look at, gathered in one value, so that tests can put anything in its place."""

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from accel_engine.doctor.driver import Driver, ask_driver
from accel_engine.doctor.tf_probe import TensorFlowDevices, probe_tensorflow
from accel_engine.run.paths import home

_Answer = TypeVar("_Answer")


def once(ask: Callable[[], _Answer]) -> Callable[[], _Answer]:
    """A question that is asked when first needed and then remembered, from whatever threads."""
    lock = threading.Lock()
    answers: list[_Answer] = []

    def answer() -> _Answer:
        with lock:
            if not answers:
                answers.append(ask())
            return answers[0]

    return answer


def installed_version(distribution: str) -> str:
    """The version of an installed package; empty when it is not installed."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(distribution)
    return ""


def requirements_of(distribution: str) -> Sequence[str]:
    """What an installed package says that it needs, each as in its metadata."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.requires(distribution) or ()
    return ()


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, as far as the checks look at it.

    Attributes:
        environment: The variables of the environment.
        root: Of the file system that holds ``sys``, ``dev`` and ``proc``.
        temporary: The directory of temporary files.
        home: The program's directory, with the runs.
        version: Tells the version of a package by name; empty when it is not installed.
        requirements: Tells what a package needs.
        driver: Asks the NVIDIA driver, once.
        sight: Asks TensorFlow, once, in a process of its own.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    root: Path = Path("/")
    temporary: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    home: Path = field(default_factory=home)
    version: Callable[[str], str] = installed_version
    requirements: Callable[[str], Sequence[str]] = requirements_of
    driver: Callable[[], Driver] = field(default_factory=lambda: once(ask_driver))
    sight: Callable[[], TensorFlowDevices] = field(default_factory=lambda: once(probe_tensorflow))

    @property
    def in_container(self) -> bool:
        """Whether this is the inside of a container, which may have been given less than the host has."""
        return any((self.root / mark).exists() for mark in (".dockerenv", "run/.containerenv"))
